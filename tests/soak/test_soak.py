"""What `make soak` judges by is true of series that are made up and of a real process, and what it does follows from a seed."""
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

os.environ.setdefault("SCALE_NAME", "soak")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scale"))
import churn  # noqa: E402  (its place is only known now)
import parties  # noqa: E402
import report  # noqa: E402
import rule  # noqa: E402

HOUR = range(0, 3600, 5)


def series(shape, noise=0.1):
    jitter = random.Random(7)
    return [(t, shape(t) + jitter.gauss(0, noise)) for t in HOUR]


def whole(shape):
    return [(t, int(shape(t))) for t in HOUR]


FLAT = {
    "noise": ("rss_mib", series(lambda t: 20)),
    "what each pass takes and gives back": ("rss_mib", series(lambda t: 20 + 0.4 * (t % 15) / 15)),
    "pools that fill at the beginning": ("rss_mib", series(lambda t: min(20, 12 + t / 60))),
    "less and less": ("rss_mib", series(lambda t: 24 - t / 1200)),
    "much for a minute": ("rss_mib", series(lambda t: 35 if 2000 < t < 2060 else 20)),
    "a large heap's own jitter": ("rss_mib", series(lambda t: 200 + 0.8 * t / 3600, noise=1)),
    "a connection now and then": ("descriptors", whole(lambda t: 18 + (t // 5) % 3)),
    "one connection more from now on": ("descriptors", whole(lambda t: 18 + (t > 2000))),
}
LEAKING = {
    "a MiB an hour": ("rss_mib", series(lambda t: 20 + t / 3600)),
    "in steps": ("rss_mib", series(lambda t: 20 + 0.25 * (t // 600))),
    "from the middle on": ("rss_mib", series(lambda t: 20 + max(0, t - 1800) / 1800)),
    "a jump near the end": ("rss_mib", series(lambda t: 20 + 2 * (t > 3000))),
    "below what each pass takes and gives back": ("rss_mib", series(lambda t: 20 + t / 3600 + 3 * (t % 15) / 15)),
    "3 % of a large heap": ("rss_mib", series(lambda t: 200 + 8 * t / 3600, noise=1)),
    "a descriptor each ten minutes": ("descriptors", whole(lambda t: 18 + t // 600)),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_does_not_grow_is_flat(name):
    judged = rule.judge(*FLAT[name])
    assert judged["flat"], judged


@pytest.mark.parametrize("name", LEAKING)
def test_what_grows_is_not(name):
    judged = rule.judge(*LEAKING[name])
    assert not judged["flat"], judged


def test_the_line_is_that_of_least_squares():
    assert rule.slope([(0, 1.0), (1, 3.0), (2, 5.0)]) == pytest.approx(2)
    assert rule.slope([(0, 0.0), (1, 0.0), (2, 3.0)]) == pytest.approx(1.5)  # by hand: (−1·0 + 1·3) / 2


def test_too_few_values_are_no_verdict():
    with pytest.raises(ValueError, match="descriptors: 15 values"):
        rule.judge("descriptors", [(t, 18) for t in range(20)])


# --- a real process --------------------------------------------------------------------------------
GROWING = """
import sys, time
kept = []
while True:
    if sys.argv[1] == "memory": kept.append(b"x" * 65536)
    if sys.argv[1] == "descriptors": kept.append(open("/dev/null"))
    time.sleep(0.01)
"""


def sampled(what):
    process = subprocess.Popen([sys.executable, "-c", GROWING, what])
    try:
        party = parties.Process(process, None)
        time.sleep(0.5)  # until it has begun
        found = []
        for i in range(80):
            party.alive()
            found.append({"second": 0.025 * i, "rss_mib": party.memory_mib()[0], "descriptors": party.descriptors()})
            time.sleep(0.025)
        return {name: rule.judge(name, report.points({"samples": found}, name))["flat"] for name in rule.BOUNDS}
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("what, flat", [
    ("nothing", {"rss_mib": True, "descriptors": True}), ("memory", {"rss_mib": False, "descriptors": True})])
def test_a_real_process_is_seen_to_grow(what, flat):
    assert sampled(what) == flat


def test_a_real_process_is_seen_to_keep_descriptors():
    assert not sampled("descriptors")["descriptors"]


# --- what comes and goes ---------------------------------------------------------------------------
def replay(seed, seconds, size=50):
    mpas = churn.Mpas(seed, size)
    return [mpas.step() for _ in range(seconds)]


def test_a_seed_is_the_same_again():
    assert replay(3, 300) == replay(3, 300)
    assert replay(3, 300) != replay(4, 300)


def test_mpas_end_once_and_are_followed_by_one_of_the_same_function():
    there = {f"fn-{i:05}": f"fn-{i:05}" for i in range(50)}
    ended, made = 0, []
    for second, (gone, new) in enumerate(replay(1, 600)):
        ended += len([there.pop(name) for name in gone])
        for name, function in new:
            assert name not in there and name not in gone and function not in there.values()
            there[name] = function
            made.append(name == function)
        assert len(there) >= 50 - churn.MPA_GAP_S, second
    assert ended == 600 * 50 // churn.MPA_LIFE_S
    assert 0.4 < sum(made) / len(made) < 0.6  # half by the name that was there before


def test_each_pod_of_a_round_is_deleted_once():
    pods = [{"metadata": {"name": f"p{i}", "labels": {"app": f"a{i % 7}"}, "creationTimestamp": f"t{i}"}} for i in range(400)]
    seconds = churn.order(1, 0, pods)
    assert len(seconds) == churn.ROUND_S and {len(s) for s in seconds} == {13, 14}
    assert sorted(name for s in seconds for name in s) == sorted(p["metadata"]["name"] for p in pods)
    assert seconds == churn.order(1, 0, pods[::-1]) != churn.order(1, 1, pods)


def test_load_moves_on():
    rounds = [churn.busy(1, number, 200) for number in range(40)]
    assert {len(r) for r in rounds} == {10} and len(set.union(*rounds)) > 100
    assert rounds == [churn.busy(1, number, 200) for number in range(40)]


def found(**changed):
    done = {"pods deleted": 8000, "MPAs deleted": 2000, "MPAs made": 2000, **changed.get("done", {})}
    samples = [{"second": t, "mpas": 190, "pods": 400, "passes": t / 15 * changed.get("pace", 1)} for t in range(0, 601, 5)]
    return {"mpas": 200, "seconds": 600, "done": done, "samples": [{**s, **changed.get("sample", {})} for s in samples]}


@pytest.mark.parametrize("changed, told", [
    ({}, None), ({"done": {"pods deleted": 3999}}, "pods deleted: 3999 of 8000"),
    ({"done": {"MPAs deleted": 10}}, "MPAs deleted: 10 of 2000"), ({"sample": {"mpas": 0}}, "MPAs followed"),
    ({"sample": {"pods": 3}}, "pods in the cache"), ({"pace": 0.4}, "passes: 16 of 40")])
def test_where_too_little_happens_nothing_is_proved(changed, told):
    wrong = report.idle(found(**changed))
    assert wrong == [] if told is None else len(wrong) == 1 and told in wrong[0], wrong
