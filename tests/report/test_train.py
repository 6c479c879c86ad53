"""mpactl train: what it writes, that chance is the seed's alone, and what is said when something is wrong."""
import csv
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest

from png import chunks
from study import MPACTL, run

COLUMNS = ["episode", "seed", "reward_mean", "reward_min", "reward_max", "slo_preservation", "cpu_utilization",
           "violation_ratio", "steps", "seconds"]
QUICK = ["--set", "trace=poisson:rate=2,span=3600,demand=20", "--set", "nodes=0", "--set", "episode_steps=20",
         "--learn", "hidden=16"]


def train(tmp_path, *argv):
    out = tmp_path / "out"
    done = run("train", *QUICK, *argv, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b"", "a bar is only for terminals"
    with (out / "episodes.csv").open(newline="") as file:
        return list(csv.DictReader(file)), xml.parse(out / "curve.svg").getroot(), done.stdout.decode()


def without_time(rows):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


@pytest.mark.parametrize("algorithm", ["ppo", "ppo-shared", "mappo", "simppo", "reinforce", "qlearning"])
def test_every_episode_of_every_seed_is_told(tmp_path, algorithm):
    rows, curve, table = train(tmp_path, "--algorithm", algorithm, "--set", "functions=3", "--episodes", "6",
                               "--seeds", "2", "--seed", "4")
    assert list(rows[0]) == COLUMNS
    assert [(r["seed"], r["episode"]) for r in rows] == [(s, str(e)) for s in "45" for e in range(1, 7)]
    assert [int(r["steps"]) for r in rows] == [3 * 20 * e for _ in "45" for e in range(1, 7)]
    for row in rows:
        assert float(row["reward_min"]) <= float(row["reward_mean"]) <= float(row["reward_max"])
        assert all(0 <= float(row[c]) <= 1 for c in ("slo_preservation", "cpu_utilization", "violation_ratio"))
    words = [t.text for t in curve.iter("{http://www.w3.org/2000/svg}text")]
    assert {"reward of a decision", "SLO preservation", "CPU utilisation", "episodes"} <= set(words)
    assert len(list(curve.iter("{http://www.w3.org/2000/svg}polygon"))) == 3, "the spread of each figure"
    assert algorithm in table and len(table.splitlines()) == 4


def test_results_depend_on_the_seed_alone(tmp_path):
    argv = ["--episodes", "6", "--seeds", "3", "--set", "clusters=2"]
    one, two = (without_time(train(tmp_path, *argv, "--jobs", jobs)[0]) for jobs in ("1", "4"))
    assert one == two
    assert len(one) == 9 and one[0]["episode"] == "2", "each round is an episode of both clusters"
    assert {r["reward_mean"] for r in one[:3]}.isdisjoint(r["reward_mean"] for r in one[3:6])


def test_learning_goes_on_from_a_checkpoint(tmp_path):
    argv = ["--seeds", "2", "--algorithm", "simppo"]
    train(tmp_path, *argv, "--episodes", "4")
    again = ["--resume", tmp_path / "out", *QUICK, *argv]
    rows, _, _ = train(tmp_path, *argv, "--episodes", "6", "--resume", tmp_path / "out")
    assert [r["episode"] for r in rows] == ["5", "6"] * 2
    assert run("train", *again, "--episodes", "6").returncode == 1
    other = run("train", *again, "--episodes", "9", "--formulation", "default")
    assert other.returncode == 1 and b"seed-1.checkpoint" in other.stderr


def test_files_can_be_named_one_by_one(tmp_path):
    done = run("train", *QUICK, "--episodes", "2", "--csv", tmp_path / "a.csv", "--svg", tmp_path / "b.svg",
               "--png", tmp_path / "c.png")
    assert done.returncode == 0
    assert (tmp_path / "a.csv").read_text().count("\n") == 3
    xml.parse(tmp_path / "b.svg")
    assert [kind for kind, _ in chunks((tmp_path / "c.png").read_bytes())] == [b"IHDR", b"IDAT", b"IEND"]


def test_an_interrupt_keeps_what_there_is(tmp_path):
    out = tmp_path / "out"
    with subprocess.Popen([MPACTL, "train", *QUICK, "--episodes", "1000000000", "--out", out],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 0, stderr.decode()
    assert b"ended early" in stdout
    assert (out / "episodes.csv").read_text().count("\n") > 1
    xml.parse(out / "curve.svg")


@pytest.mark.parametrize("argv, status, says", [
    (["--algorithm", "pqo"], 2, "no algorithm \"pqo\""),
    (["--formulation", "none"], 2, "none"),
    (["--set", "functions"], 2, "NAME=VALUE"),
    (["--set", "function=2"], 2, "--set function=2"),
    (["--set", "functions=0"], 2, "functions"),
    (["--learn", "gamma=2"], 2, "gamma is \"2\""),
    (["--learn", "speed=2"], 2, "no \"speed\""),
    (["--episodes", "0"], 2, "episodes"),
    (["--episodes", "2.5"], 2, "whole numbers"),
    (["--algorithm", "simppo", "--formulation", "aware"], 1, "use the formulation simppo"),
    (["--set", "trace=rps:/nowhere"], 1, "/nowhere"),
    (["--csv", "/nowhere/out.csv"], 1, "--csv /nowhere/out.csv"),
    (["--out", "/nowhere/out"], 1, "--out /nowhere/out"),
])
def test_what_is_wrong_is_told(argv, status, says):
    done = run("train", *argv)
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    assert says in done.stderr.decode() and done.stderr.startswith(b"mpactl: ")


def test_help_lists_what_can_be_set():
    done = run("train", "--help")
    assert done.returncode == 0
    for word in (b"--algorithm", b"simppo", b"episode_steps", b"actor_rate"):
        assert word in done.stdout
