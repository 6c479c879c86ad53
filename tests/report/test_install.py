"""Manual pages, the krew archive and make install: complete, and as the programs are."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("MPACTL", "build/mpactl")).parent
PAGES = {"faasrl-mpa": "8", "mpactl": "1", "kubectl-mpa": "1"}


def run(*argv, **more):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shown(name):
    return run("man", "-l", ROOT / f"docs/man/{name}.{PAGES[name]}",
               env={**os.environ, "MANWIDTH": "500", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})


def options_of(name):
    """Every option of every command, by the programs' own help."""
    helps = [run(BUILD / name, "--help")]
    if name != "faasrl-mpa":
        said = "kubectl mpa" if name == "kubectl-mpa" else name
        for command in re.findall(rf"^  {said} ([a-z]+) ", helps[0], re.MULTILINE):
            helps.append(run(BUILD / name, command, "--help"))
    return {option for text in helps for option in re.findall(r"^  (?:-\w, |    )?(--[a-z0-9-]+) ", text, re.MULTILINE)}


@pytest.mark.parametrize("name", PAGES)
def test_every_option_is_in_the_page(name):
    options = options_of(name)
    assert len(options) > 10
    page = shown(name)
    assert [o for o in options if not re.search(rf"(^|[ ,]){o}( |$)", page, re.MULTILINE)] == []


def test_pages_are_as_the_programs_are():
    run(ROOT / "tools/man", "--check", "--build", BUILD)


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_well_formed(name):
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", ROOT / f"docs/man/{name}.{PAGES[name]}"],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = shown(name)
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
        assert re.search(rf"^{title}$", text, re.MULTILINE)


def test_a_page_that_is_stale_is_found(tmp_path):
    copy = tmp_path / "project"
    for part in ("docs/man", "tools"):
        shutil.copytree(ROOT / part, copy / part)
    page = copy / "docs/man/mpactl.1"
    page.write_text(page.read_text().replace("\\-\\-seed", "\\-\\-sead"))
    done = subprocess.run([copy / "tools/man", "--check", "--build", BUILD], capture_output=True, text=True)
    assert done.returncode == 1 and "mpactl.1" in done.stderr


def test_krew_archive_holds_what_its_manifest_says(tmp_path):
    for out in ("a", "b"):
        run(ROOT / "tools/krew", "--version", "1.2.3", "--program", BUILD / "mpactl", "--out", tmp_path / out,
            "--url", "https://example.invalid/releases/")
    manifest = yaml.safe_load((tmp_path / "a/mpa.yaml").read_text())
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin" and manifest["metadata"] == {"name": "mpa"}
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"]) and spec["version"] == "v1.2.3"
    assert 0 < len(spec["shortDescription"]) <= 50 and "\n" not in spec["shortDescription"]
    assert spec["description"].strip()
    platform, = spec["platforms"]
    assert set(platform) == {"selector", "uri", "sha256", "bin", "files"}
    assert platform["selector"]["matchLabels"]["os"] == "linux"
    name = platform["uri"].rsplit("/", 1)[1]
    assert platform["uri"].startswith("https://example.invalid/releases/kubectl-mpa-v1.2.3-linux-")
    archive = tmp_path / "a" / name
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    assert archive.read_bytes() == (tmp_path / "b" / name).read_bytes()
    with tarfile.open(archive) as tar:
        assert {m.name for m in tar} == {f["from"] for f in platform["files"]} == {"kubectl-mpa", "LICENSE"}
        tar.extractall(tmp_path / "out", filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(tmp_path / "out")
    assert platform["bin"] in {f["from"] for f in platform["files"]}
    assert run(tmp_path / "out/kubectl-mpa", "version").startswith("kubectl-mpa ")
    assert (tmp_path / "out/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "@" not in (tmp_path / "a/mpa.yaml").read_text()
    linked = tmp_path / ".krew/bin"  # as krew does with the one program that a plugin has
    linked.mkdir(parents=True)
    (linked / platform["bin"]).symlink_to(tmp_path / "out/kubectl-mpa")
    command, = re.findall(r"ln -s .*", platform.get("caveats") or spec["caveats"])
    run("env", "-u", "KREW_ROOT", f"HOME={tmp_path}", "sh", "-c", command)
    assert run(linked / "kubectl_complete-mpa", "expl").splitlines()[-1] == ":4"
    assert command in (ROOT / "docs/kubectl-mpa.md").read_text()


@pytest.fixture(scope="module")
def krew():
    """krew itself, and the check of its index, made by Go once. A Go that cannot fetch them is a failure."""
    done = subprocess.run([ROOT / "tests/cluster/build", "krew"], capture_output=True, text=True)
    if done.returncode and "needs Go" in done.stderr:
        pytest.skip("krew installs nothing here: there is no Go of 1.24 or newer to build it with")
    assert done.returncode == 0, done.stderr
    program = pathlib.Path(done.stdout.strip())
    return program, program.with_name("validate-krew-manifest")


def test_krew_installs_it(krew, tmp_path):
    """As docs/kubectl-mpa.md has it, by krew's own code; nothing is fetched."""
    program, check = krew
    run(ROOT / "tools/krew", "--version", "1.2.3", "--program", BUILD / "mpactl", "--out", tmp_path)
    manifest, (archive,) = tmp_path / "mpa.yaml", tmp_path.glob("*.tar.gz")
    run(check, "-manifest", manifest, "-skip-install")
    home = tmp_path / "krew"
    install = [program, "install", f"--manifest={manifest}", f"--archive={archive}"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KREW_ROOT": str(home), "KREW_NO_UPGRADE_CHECK": "1"}
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused = subprocess.run(install, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode and "checksum" in refused.stderr and not (home / "bin/kubectl-mpa").exists()
    archive.write_bytes(whole)
    run(*install, env=env, stdin=subprocess.DEVNULL)
    linked = home / "bin/kubectl-mpa"
    assert linked.resolve() == home / "store/mpa/v1.2.3/kubectl-mpa"
    for argv in (["version"], ["--help"], ["top", "--help"]):
        assert run(linked, *argv) == run(BUILD / "kubectl-mpa", *argv)
    command, = re.findall(r"ln -s .*", manifest.read_text())
    run("sh", "-c", command, env=env)
    assert run(home / "bin/kubectl_complete-mpa", "expl").splitlines()[-1] == ":4"


def test_install(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    for name in ("faasrl-mpa", "mpactl"):
        shutil.copy2(BUILD / name, build / name)
    for name in ("kubectl-mpa", "kubectl_complete-mpa"):
        (build / name).symlink_to("mpactl")
    (build / "policy").write_bytes(b"a policy")
    run("make", "-C", ROOT, "install", f"BUILD={build}", f"DESTDIR={tmp_path}/root", "PREFIX=/opt/x",
        "-o", "all", "-o", build / "policy")
    root = tmp_path / "root/opt/x"
    assert run(root / "bin/mpactl", "version").startswith("mpactl ")
    assert run(root / "bin/kubectl-mpa", "version").startswith("kubectl-mpa ")
    assert run(root / "bin/kubectl_complete-mpa", "expl").splitlines()[-1] == ":4"
    assert (root / "bin/mpactl").resolve().parent / "policy" == (root / "lib/faasrl-mpa/policy").resolve()
    files = {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}
    assert files == {
        "bin/faasrl-mpa", "bin/mpactl", "bin/kubectl-mpa", "bin/kubectl_complete-mpa", "lib/faasrl-mpa/faasrl-mpa",
        "lib/faasrl-mpa/mpactl", "lib/faasrl-mpa/policy", "share/man/man1/mpactl.1", "share/man/man1/kubectl-mpa.1",
        "share/man/man8/faasrl-mpa.8", "share/bash-completion/completions/kubectl-mpa",
        "share/zsh/site-functions/_kubectl-mpa", "share/fish/vendor_completions.d/kubectl-mpa.fish"}
    assert all(p.stat().st_size > 0 for p in root.rglob("*") if p.is_file())
