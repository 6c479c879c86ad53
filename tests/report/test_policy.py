"""mpactl policy, and --policy of the commands that run the recommender ppo."""
import shutil

import pytest

from study import BURSTY, MPACTL, STEADY, compare, recommenders, run, traces


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    out = tmp_path_factory.mktemp("policy") / "policy"
    done = run("policy", "--updates", "1", "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    return out


def test_the_same_seed_gives_the_same_file(policy, tmp_path):
    again, other = tmp_path / "again", tmp_path / "other"
    assert run("policy", "--updates", "1", "--jobs", "1", "--out", again).returncode == 0
    assert run("policy", "--updates", "1", "--seed", "2", "--out", other).returncode == 0
    assert again.read_bytes() == policy.read_bytes() != other.read_bytes()
    shown = run("checkpoint", "show", policy).stdout.decode()
    assert "recommender" in shown and "actor" in shown


def test_ppo_is_compared_like_any_other(policy, tmp_path):
    argv = [*traces(STEADY, BURSTY), *recommenders("ppo", "feedforward"), "--policy", policy]
    rows = compare(tmp_path, *argv, "--jobs", "2")
    assert rows == compare(tmp_path, *argv, "--jobs", "1")
    mine = [r for r in rows if r["recommender"] == "ppo"]
    assert mine and all(r["violation_ratio"] < 0.2 and r["actions"] > 0 for r in mine)


def test_decisions_say_what_the_policy_changed(policy, tmp_path):
    done = run("simulate", *traces(BURSTY), *recommenders("ppo"), "--policy", policy, "--changes")
    assert done.returncode == 0, done.stderr.decode()
    assert "ready for" in done.stdout.decode()


@pytest.mark.parametrize("command", ["compare", "simulate", "tune"])
def test_ppo_needs_a_policy(command, tmp_path):
    alone = tmp_path / "mpactl"  # nothing is beside it
    shutil.copy(MPACTL, alone)
    broken = tmp_path / "broken"
    broken.write_bytes(b"FAASRLCP and nothing more")
    for argv in ([], ["--policy", broken]):
        done = run(command, *traces(STEADY), *recommenders("ppo"), *argv, program=alone)
        assert done.returncode == 1
        assert b"--policy" in done.stderr and b"mpactl policy" in done.stderr


def test_a_policy_is_tuned_for_one_function(policy, tmp_path):
    own, again = tmp_path / "own", tmp_path / "again"
    for out in (own, again):
        done = run("policy", "--for", "poisson:rate=1,span=3600,demand=200", "--from", policy, "--episodes", "1",
                   "--out", out)
        assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["before", "after"]
    if len(lines) > 2:
        assert "nothing better" in lines[2] and not own.exists()
    else:
        assert own.read_bytes() == again.read_bytes() != policy.read_bytes()
        assert run("simulate", *traces(STEADY), *recommenders("ppo"), "--policy", own).returncode == 0


@pytest.mark.parametrize("argv,message", [
    (["--for", "poisson:rate=1", "--function", "no-such"], "no function no-such"),
    (["--for", "nothing:rate=1"], "nothing"),
    (["--for", "poisson:rate=1", "--from", "no-such-file"], "no-such-file"),
])
def test_what_cannot_be_tuned_for_is_told(policy, tmp_path, argv, message):
    out = tmp_path / "own"
    done = run("policy", "--from", policy, "--out", out, *argv)
    assert done.returncode != 0 and message in done.stderr.decode() and not out.exists()


def test_a_policy_is_judged_without_what_is_off(policy):
    few = ["--judge", policy, "--clusters", "2", "--seed", "3", "--jobs", "1"]
    judged = [run("policy", *few, *off) for off in ([], ["--off", "head cpu"], ["--off", "moon"])]
    assert [d.returncode for d in judged] == [0, 0, 1] and b"moon" in judged[2].stderr
    names = [[line.split()[0] for line in d.stdout.decode().splitlines()[2:]] for d in judged]
    assert names == [["ppo", "feedforward", "threshold"], ["ppo"], []]


def test_the_policy_beside_the_program_is_taken(policy, tmp_path):
    alone = tmp_path / "mpactl"
    shutil.copy(MPACTL, alone)
    shutil.copy(policy, tmp_path / "policy")
    done = run("compare", *traces(STEADY), *recommenders("ppo"), "--no-oracle", program=alone)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("argv, says", [
    (["--updates", "1"], b"--out"),
    (["--updates", "1.5", "--out", "x"], b"whole numbers"),
    (["--updates", "0", "--out", "x", "--off", "moon"], b"moon"),
])
def test_what_is_wrong_is_told(argv, says, tmp_path):
    done = run("policy", *argv)
    assert done.returncode in (1, 2) and says in done.stderr
