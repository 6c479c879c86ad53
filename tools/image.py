#!/usr/bin/env python3
"""Builds a container image from files, without a container daemon.

The archive is an OCI image layout that also carries docker's manifest.json, so both
`ctr image import` and `docker load` take it. Nothing in it depends on when or by whom it was
built: the same inputs give the same digest.

    image.py --out x.tar --name local/x:1 --entrypoint /x --libs build/x:/x
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import stat
import subprocess
import sys
import tarfile

NONROOT = 65532
USER_FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\n"
                  f"nonroot:x:{NONROOT}:{NONROOT}:nonroot:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{NONROOT}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Where the dynamic loader looks without a cache file or a run path.
LOADER_DIRECTORIES = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
EPOCH = "1970-01-01T00:00:00Z"
MEDIA = "application/vnd.oci.image"


class ImageError(Exception):
    """A reason for not building the image, said as `what: why`."""


class Layer:
    """The file tree of the image: path without leading slash -> (tar header, content)."""

    def __init__(self):
        self.entries = {}

    def add_file(self, path, content, executable=False):
        header = self._header(path, tarfile.REGTYPE, 0o755 if executable else 0o644)
        header.size = len(content)
        self._add(header, content)

    def add_symlink(self, path, target):
        header = self._header(path, tarfile.SYMTYPE, 0o777)
        header.linkname = target
        self._add(header, b"")

    def add_directory(self, path):
        if path in self.entries:
            if not self.entries[path][0].isdir():
                raise ImageError(f"/{path}: is both a file and a directory")
            return
        if path:
            self._add(self._header(path, tarfile.DIRTYPE, 0o755), b"")

    def _add(self, header, content):
        if header.name in self.entries:
            raise ImageError(f"/{header.name}: added twice")
        self.add_directory(os.path.dirname(header.name))
        self.entries[header.name] = (header, content)

    @staticmethod
    def _header(path, kind, mode):
        header = tarfile.TarInfo(path)
        header.type = kind
        header.mode = mode
        return header

    def tar(self):
        """Parents sort before their children, so an unpacker never lacks a directory."""
        return write_tar(self.entries[path] for path in sorted(self.entries))


def write_tar(entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for header, content in entries:
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def add_source(layer, source, path):
    """Adds a file or a whole directory and returns the ELF files among them."""
    if not os.path.isdir(source):
        content = read_file(source)
        layer.add_file(path, content, os.stat(source).st_mode & stat.S_IXUSR)
        return [source] if content.startswith(b"\x7fELF") else []

    layer.add_directory(path)
    elves = []
    for name in sorted(os.listdir(source)):
        child, child_path = os.path.join(source, name), os.path.join(path, name)
        if os.path.islink(child):
            layer.add_symlink(child_path, os.readlink(child))
        else:
            elves += add_source(layer, child, child_path)
    return elves


def libraries_of(elf):
    """The shared libraries and the loader that `elf` needs, as absolute paths."""
    answer = subprocess.run(["ldd", elf], capture_output=True, text=True, check=False,
                            env={**os.environ, "LC_ALL": "C"})
    if answer.returncode != 0:
        if "not a dynamic executable" in answer.stderr + answer.stdout:
            return set()
        raise ImageError(f"{elf}: ldd: {answer.stderr.strip()}")
    missing = re.search(r"(\S+) => not found", answer.stdout)
    if missing:
        raise ImageError(f"{elf}: library {missing[1]} not found")
    return set(re.findall(r"(/\S+) \(0x", answer.stdout))


def add_libraries(layer, elves):
    libraries = set().union(*(libraries_of(elf) for elf in elves))
    for library in sorted(libraries):
        place = library if library.startswith(LOADER_DIRECTORIES) \
            else "/usr/lib/" + os.path.basename(library)
        path = place.lstrip("/")
        if path not in layer.entries:
            layer.add_file(path, read_file(library), executable=True)


def build_layer(options):
    layer = Layer()
    elves = []
    for pair in options.sources:
        source, _, destination = pair.rpartition(":")
        if not source or not destination.startswith("/"):
            raise ImageError(f"{pair}: want SRC:DST with an absolute DST")
        elves += add_source(layer, source, os.path.normpath(destination).lstrip("/"))
    if options.users:
        for path, text in USER_FILES.items():
            layer.add_file(path, text.encode())
    if options.libs:
        add_libraries(layer, elves)
    return layer


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def describe(media_type, content):
    return {"mediaType": media_type, "digest": "sha256:" + sha256(content), "size": len(content)}


def this_platform():
    machine = platform.machine()
    return {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}


def image_config(options, layer_tar):
    run = {"Entrypoint": [options.entrypoint], "WorkingDir": "/"}
    if options.arg:
        run["Cmd"] = options.arg
    if options.env:
        run["Env"] = options.env
    if options.user:
        run["User"] = options.user
    return as_json({
        **this_platform(),
        "created": EPOCH,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer_tar)]},
        "history": [{"created": EPOCH, "created_by": "image.py"}],
    })


def full_name(name):
    """The name as the kubelet asks for it, with docker's implied registry spelled out."""
    first, slash, _ = name.partition("/")
    if not slash:
        return "docker.io/library/" + name
    if "." in first or ":" in first or first == "localhost":
        return name
    return "docker.io/" + name


def build_archive(options):
    layer_tar = build_layer(options).tar()
    layer = gzip.compress(layer_tar, mtime=0)
    config = image_config(options, layer_tar)
    manifest = as_json({
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": describe(f"{MEDIA}.config.v1+json", config),
        "layers": [describe(f"{MEDIA}.layer.v1.tar+gzip", layer)],
    })
    index = as_json({
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.index.v1+json",
        "manifests": [{
            **describe(f"{MEDIA}.manifest.v1+json", manifest),
            "platform": this_platform(),
            "annotations": {
                "io.containerd.image.name": full_name(options.name),
                "org.opencontainers.image.ref.name": options.name.rpartition(":")[2],
            },
        }],
    })
    archive = Layer()
    for blob in (config, layer, manifest):
        archive.add_file("blobs/sha256/" + sha256(blob), blob)
    archive.add_file("index.json", index)
    archive.add_file("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    archive.add_file("manifest.json", as_json([{
        "Config": "blobs/sha256/" + sha256(config),
        "RepoTags": [options.name],
        "Layers": ["blobs/sha256/" + sha256(layer)],
    }]))
    return archive.tar(), "sha256:" + sha256(manifest)


def checked(pattern, example):
    def check(value):
        if not re.fullmatch(pattern, value):
            raise argparse.ArgumentTypeError(f"{value!r}: want something like {example}")
        return value
    return check


def parse_options(arguments):
    parser = argparse.ArgumentParser(
        prog="image.py", description="Builds a container image archive from files.")
    parser.add_argument("--out", required=True, metavar="FILE", help="archive to write")
    parser.add_argument("--name", required=True, help="image name with its tag",
                        type=checked(r"[a-z0-9][a-z0-9._:/-]*:[\w][\w.-]{0,127}", "local/x:1"))
    parser.add_argument("--entrypoint", required=True, help="program to run",
                        type=checked(r"/.+", "/x"))
    parser.add_argument("--arg", action="append", help="argument of the entrypoint; repeatable")
    parser.add_argument("--user", help="numeric user and group", metavar="UID[:GID]",
                        type=checked(r"\d+(:\d+)?", "65532:65532"))
    parser.add_argument("--env", action="append", help="environment variable; repeatable",
                        metavar="K=V", type=checked(r"(?s)[^=]+=.*", "K=V"))
    parser.add_argument("--libs", action="store_true",
                        help="add the shared libraries that the ELF files need")
    parser.add_argument("--users", action="store_true",
                        help="add /etc/passwd, /etc/group and /etc/nsswitch.conf")
    parser.add_argument("sources", nargs="+", metavar="SRC:DST",
                        help="file or directory, and its path in the image")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    try:
        archive, digest = build_archive(options)
        with open(options.out, "wb") as file:
            file.write(archive)
    except OSError as error:
        sys.exit(f"image.py: {error.filename}: {error.strerror}")
    except ImageError as error:
        sys.exit(f"image.py: {error}")
    print(f"{options.name} {digest}")


if __name__ == "__main__":
    main(sys.argv[1:])
