"""Builds the simulator, the same C sources as the controller's, into a library inside the package."""

import os
import pathlib
import shutil
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import CCompilerError, ExecError, PlatformError

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent / "pkg"
COPIED = HERE / "pkg"  # in a source distribution
SOURCES = COPIED if COPIED.is_dir() else REPOSITORY
PARTS = (
    "base/buf.c",
    "base/error.c",
    "base/file.c",
    "base/map.c",
    "base/memory.c",
    "base/parallel.c",
    "trace/*.c",
    "sim/*.c",
)


def sources():
    found = sorted(path for part in PARTS for path in SOURCES.glob(part))
    if not found:
        raise SystemExit(
            f"faasrl-env: no C sources in {SOURCES}: install from a checkout of the "
            "repository (pip install ./python) or from a source distribution"
        )
    return found


class BuildLibrary(build_ext):
    def build_extension(self, ext):
        if not sys.platform.startswith("linux"):
            raise SystemExit("faasrl-env: only Linux is supported")
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError) as error:
            raise SystemExit(
                f"faasrl-env: the simulator could not be compiled: {error}\n"
                "faasrl-env: it needs gcc or clang and the headers of the C library; on Debian: "
                "apt install gcc libc6-dev"
            ) from error


def headers():
    return [path for part in ("base", "trace", "sim") for path in sorted((SOURCES / part).glob("*.h"))]


def from_here(path):
    """Relative, so that setuptools keeps its objects under build/."""
    return os.path.relpath(path, HERE)


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, [file for file in files if not file.startswith("..")])
        for path in sources() + headers():
            target = pathlib.Path(base_dir) / "pkg" / path.relative_to(SOURCES)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


library = Extension(
    "faasrl_env._sim",
    sources=[from_here(path) for path in sources()],
    depends=[from_here(path) for path in headers()],
    include_dirs=[str(SOURCES)],
    define_macros=[("_GNU_SOURCE", None), ("FAASRL_NO_JSON", None)],
    extra_compile_args=["-std=gnu17", "-O2"],
    libraries=["m", "pthread"],
)
setup(ext_modules=[library], cmdclass={"build_ext": BuildLibrary, "sdist": SourceDistribution})
