"""The controller's journal: what mpactl explain tells of it, and that mpactl replay repeats it."""
import os
import subprocess
from pathlib import Path

import pytest

from study import MPACTL, run

CONTROLLER = Path(MPACTL).with_name("faasrl-mpa")
NAMES = ("checkout", "report", "thumbnail", "web")


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "journal"
    subprocess.run([CONTROLLER, "--simulate", "--listen=off", "--simulate-duration=2h", "--simulate-speed=0",
                    "--journal", path], check=True, stdout=subprocess.DEVNULL)
    return path


def test_decisions_are_repeated_with_the_same_result(journal):
    done = run("replay", journal)
    assert done.returncode == 0, done.stdout
    decisions = 4 * (7200 - 45) // 15  # the first look back is a window after the beginning
    assert done.stdout.decode() == (f"{decisions} decisions on 4 MPA(s): {decisions} repeated with the same result, "
                                    "0 with another\n")
    assert run("replay", journal, "--mpa", "web").stdout.startswith(f"{decisions // 4} decisions on 1 MPA".encode())


def test_what_differs_is_told(journal, tmp_path):
    text = journal.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(text) if '"line":"decision"' in line and '"replicas":1,' in line)
    text[at] = text[at].replace('"proposed":{"replicas":1,', '"proposed":{"replicas":3,')
    (tmp_path / "other").write_text("".join(text))
    done = run("replay", tmp_path / "other")
    assert done.returncode == 1
    assert b"1 with another" in done.stdout and b" then (" in done.stdout and b" now (" in done.stdout


def test_another_recommender_is_asked(journal):
    done = run("replay", journal, "--recommender", "fixed")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and sorted(line.split()[0] for line in lines[1:5]) == [
        f"default/{name}" for name in NAMES]
    assert lines[5].split()[0] == "all"


def test_decisions_are_told_as_a_story(journal):
    done = run("explain", journal, "--last", "3")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("default/")] == [
        f"default/{name}" for name in NAMES]
    assert "before these" in text and "→" in text and "decided by threshold" in text
    one = run("explain", journal, "--mpa", "default/web", "--all", "--last", "1000000").stdout.decode()
    assert len(one.splitlines()) == 2 + (7200 - 45) // 15
    assert "checkout" not in one


def test_going_on_with_a_file_keeps_what_is_there(journal, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(journal.read_bytes()[:-20])  # as if killed in the middle of a line
    subprocess.run([CONTROLLER, "--simulate", "--listen=off", "--simulate-duration=10m", "--simulate-speed=0",
                    "--journal", path], check=True, stdout=subprocess.DEVNULL)
    done = run("replay", path)
    assert done.returncode == 0 and b" 0 with another" in done.stdout


@pytest.mark.parametrize("argv, status, says", [
    (["replay"], 2, "name the journal"),
    (["explain"], 2, "name the journal"),
    (["explain", "/nowhere"], 1, "/nowhere"),
    (["replay", "/nowhere"], 1, "/nowhere"),
    (["replay", "/dev/null"], 1, "no decision"),
    (["replay", "/dev/null", "--recommender", "hpq"], 2, "hpq"),
    (["explain", "/dev/null", "--last", "0.5"], 2, "last"),
    (["explain", "/dev/null", "--first", "2"], 2, "first"),
])
def test_what_is_wrong_is_told(argv, status, says):
    done = run(*argv)
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    assert says in done.stderr.decode() and done.stderr.startswith(b"mpactl: ")


def test_a_journal_that_cannot_be_written_ends_the_start(tmp_path):
    done = subprocess.run([CONTROLLER, "--simulate", "--journal", tmp_path], capture_output=True, text=True,
                          env=os.environ)
    assert done.returncode == 1 and "--journal" in done.stderr and str(tmp_path) in done.stderr
