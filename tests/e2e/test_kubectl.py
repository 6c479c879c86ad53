"""kubectl mpa as kubectl runs it, against a real API server."""
import json
import re
import signal
import subprocess

import pytest
import yaml

from harness import BUILD, ENV, ROOT, Controller, apply, kubectl, mpa, run, wait


@pytest.fixture
def followed(namespace):
    """Two MPAs of a workload that is not there: the controller says so in their status and events."""
    text = (ROOT / "deploy/examples/mpa.yaml").read_text()
    apply(text, namespace)
    apply(text.replace("name: primes", "name: second"), namespace)
    with Controller(namespace):
        wait("a status", lambda: mpa(namespace).get("status", {}).get("conditions"))
        yield namespace


def test_list_and_top(followed):
    lines = kubectl("mpa", "list", "-n", followed).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "primes", "second"]
    assert re.match(r"primes +Deployment/primes +Auto +threshold ", lines[1])
    everywhere = kubectl("mpa", "top", "-A", "--no-headers").stdout
    assert sum(line.startswith(f"{followed} ") for line in everywhere.splitlines()) == 2
    theirs = yaml.safe_load(kubectl("get", "mpa", "primes", "-n", followed, "-o", "yaml").stdout)
    ours = yaml.safe_load(kubectl("mpa", "list", "primes", "-n", followed, "-o", "yaml").stdout)
    for one in (ours, theirs):  # which may have been written in between
        one.pop("status"), one["metadata"].pop("resourceVersion")
    assert ours == theirs
    names = kubectl("mpa", "list", "-n", followed, "-o", "name").stdout
    assert names == kubectl("get", "mpa", "-n", followed, "-o", "name").stdout


def test_pause_is_what_the_controller_knows(followed):
    assert kubectl("mpa", "pause", "primes", "-n", followed).stdout == "mpa/primes paused\n"
    wait("the condition", lambda: paused(followed) == "True")
    history = kubectl("mpa", "history", "primes", "-n", followed).stdout
    assert "condition  Paused" in history and "Created" in history
    assert "Paused since" in kubectl("mpa", "explain", "primes", "-n", followed).stdout
    assert kubectl("mpa", "resume", "--all", "-n", followed).stdout == "mpa/primes resumed\nmpa/second was running already\n"
    wait("the condition", lambda: paused(followed) == "False")


def paused(namespace):
    return {c["type"]: c["status"] for c in mpa(namespace)["status"]["conditions"]}.get("Paused")


def test_top_follows(followed, tmp_path):
    out = tmp_path / "out"
    with open(out, "w", encoding="utf-8") as file:
        process = subprocess.Popen([BUILD / "kubectl-mpa", "top", "-w", "-n", followed], stdout=file, env=ENV)
    try:
        wait("a table", lambda: "2 MPA(s)" in out.read_text())
        kubectl("mpa", "pause", "second", "-n", followed)
        wait("the change", lambda: "Auto, paused" in out.read_text())
        kubectl("delete", "mpa", "second", "-n", followed)
        wait("the end of one", lambda: "1 MPA(s)" in out.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_what_is_not_there_is_told(followed):
    done = kubectl("mpa", "explain", "third", "-n", followed, check=False)
    assert done.returncode == 1 and f'"third" in namespace {followed}' in done.stderr
    elsewhere = kubectl("mpa", "explain", "second", "-n", "default", check=False)
    assert f"but in {followed}" in elsewhere.stderr


def test_completion_by_kubectl(followed):
    out = run("kubectl", "__complete", "mpa", "explain", "-n", followed, "").stdout
    assert out.splitlines()[:2] == ["primes", "second"]


def test_who_may_not_is_told(namespace, tmp_path):
    config = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
    anonymous = {"clusters": [{"name": "c", "cluster": config["clusters"][0]["cluster"]}]}
    (tmp_path / "config").write_text(json.dumps(anonymous))

    def ask(*argv):
        return run(BUILD / "kubectl-mpa", "list", "-n", namespace, "--kubeconfig", tmp_path / "config",
                   "--cluster=c", *argv, check=False)

    nobody, wrong = ask(), ask("--token=wrong")
    assert (nobody.returncode, wrong.returncode) == (1, 1)
    assert "forbidden" in nobody.stderr.lower() or "unauthorized" in nobody.stderr.lower(), nobody.stderr
    assert "unauthorized" in wrong.stderr.lower(), wrong.stderr
    account = run("kubectl", "create", "token", "faasrl-mpa", "-n", "faasrl-mpa").stdout.strip()
    assert ask(f"--token={account}").returncode == 0
