"""docs/train-on-history.md: its commands, and tools/load-history on a journal and on a Prometheus."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/alerts"))
from world import Prometheus, Served  # noqa: E402

TOOL = ROOT / "tools/load-history"
PAGE = (ROOT / "docs/train-on-history.md").read_text()


def bash(script):
    return subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, LC_ALL="C.UTF-8"))


def load_history(*words):
    return subprocess.run([TOOL, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_page_does_what_it_says():
    said = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                said.append([line[2:], []])
            else:
                said[-1][1] += line.split()
    assert len(said) > 6
    before = ""
    for command, words in said:
        done = bash(before + command)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        pattern = r"\s*".join(re.escape(w).replace("…", ".*?") for w in words)
        assert re.search(pattern, done.stdout, re.S), f"$ {command}\n{done.stdout}"
        if command.startswith("workload="):
            before = command + "\n"


def test_prometheus_is_asked_and_the_load_is_that_of_its_series(tmp_path):
    served = Served(Prometheus)
    try:
        out = tmp_path / "load.txt"
        done = load_history("--prometheus", served.url, "--namespace", "shop", "--pods", "web-.*", "--hours", 1, "--out", out)
    finally:
        served.stop()
    assert done.returncode == 0, done.stderr
    # world.py answers any query but that for CPU and throttling with 3e7, and that for CPU with 0.12 cores.
    assert done.stdout == f"rps:{out},demand={1000 * 0.12 / 3e7:.3g}\n"
    assert [float(x) for x in out.read_text().split()] == [3e7] * 3600


@pytest.mark.parametrize("words,why", [
    (["--journal", "x"], "--journal needs --mpa"),
    (["--journal", "/nowhere/x", "--mpa", "a/b"], "No such file"),
    (["--journal", os.devnull, "--mpa", "a/b"], "has no decision on a/b"),
    (["--prometheus", "http://127.0.0.1:9", "--namespace", "a", "--pods", "b"], "127.0.0.1:9"),
])
def test_what_is_wrong_is_said(words, why, tmp_path):
    done = load_history(*words, "--out", tmp_path / "load.txt")
    assert done.returncode != 0 and why in done.stderr and "Traceback" not in done.stderr
