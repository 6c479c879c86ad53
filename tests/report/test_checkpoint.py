"""`mpactl checkpoint show` on a small file of every part, and on what is none."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MPACTL = ROOT / os.environ.get("MPACTL", "build/mpactl")
WHOLE = ROOT / "tests/fuzz/corpus/checkpoint/whole"


def show(*arguments):
    return subprocess.run([MPACTL, "checkpoint", *arguments], capture_output=True, text=True)


def test_all_parts_are_told():
    done = show("show", WHOLE)
    assert done.returncode == 0 and done.stderr == ""
    told = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert ["algorithm", "ppo"] in told
    assert ["learned", "1000 steps, 7 episodes, 5 updates"] in told
    assert ["actions", "replicas (3 options), cpu (2 options)"] in told
    assert ["network", "actor: 2-2-5 relu, 21 weights, Adam after 9 steps"] in told
    assert ["table", "q: 4 states, 6 actions"] in told
    assert told[-1] == ["sha256", WHOLE.read_bytes()[20:52].hex()]


def test_what_is_none_is_refused(tmp_path):
    damaged = bytearray(WHOLE.read_bytes())
    damaged[-9] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    done = show("show", tmp_path / "damaged")
    assert done.returncode == 1 and "does not match its SHA-256" in done.stderr
    assert show("show", ROOT / "Makefile").returncode == 1
    assert show("show", tmp_path / "nothing").returncode == 1
    assert show("show").returncode == show("hide", WHOLE).returncode == 2
