"""mpactl train --tensorboard: records, sums and messages as TensorBoard's own reader wants them."""
import csv
import struct
import time

import pytest

from protobuf import fields
from study import run

TAGS = {"reward": "reward_mean", "slo_preservation": "slo_preservation", "cpu_utilization": "cpu_utilization",
        "violation_ratio": "violation_ratio"}
QUICK = ["--set", "trace=poisson:rate=2,span=3600,demand=20", "--set", "nodes=0", "--set", "episode_steps=20",
         "--learn", "hidden=16"]


def shifted(rest, bits=8):
    return shifted(rest >> 1 ^ (0x82f63b78 if rest & 1 else 0), bits - 1) if bits else rest


SHIFTED = [shifted(byte) for byte in range(256)]


def crc32c(data):
    rest = 0xffffffff
    for byte in data:
        rest = rest >> 8 ^ SHIFTED[(rest ^ byte) & 0xff]
    return rest ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        body = data[at + 12:at + 12 + length]
        assert crc == masked(data[at:at + 8])
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        found.append(body)
        at += 16 + length
    return found


def events(path):
    """(wall time, step, {tag: value}) of each event behind the first, which tells the version."""
    first, *rest = [fields(record) for record in records(path)]
    assert first[3] == [b"brain.Event:2"]
    found = []
    for event in rest:
        values = [fields(value) for value in fields(event[5][0])[1]]
        found.append((event[1][0], event[2][0], {v[1][0].decode(): v[2][0] for v in values}))
    return found


def test_every_round_of_every_seed_is_there(tmp_path):
    begun = time.time()
    done = run("train", *QUICK, "--episodes", "250", "--seeds", "2", "--seed", "3", "--csv", tmp_path / "a.csv",
               "--tensorboard", tmp_path / "board")
    assert done.returncode == 0, done.stderr.decode()
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(d.name for d in (tmp_path / "board").iterdir()) == ["seed-3", "seed-4"]
    for seed in "34":
        (path,) = (tmp_path / "board" / f"seed-{seed}").iterdir()
        assert "tfevents" in path.name
        told, expected = events(path), [r for r in rows if r["seed"] == seed]
        assert [step for _, step, _ in told] == [int(r["episode"]) for r in expected] == list(range(1, 251))
        assert begun - 1 <= told[0][0] <= told[-1][0] <= time.time() + 1
        for (_, _, values), row in zip(told, expected):
            assert set(TAGS) <= set(values) <= {*TAGS, "steps_per_second"}
            for tag, column in TAGS.items():
                assert values[tag] == pytest.approx(float(row[column]), rel=1e-6, abs=1e-7)
        speeds = [values["steps_per_second"] for _, _, values in told if "steps_per_second" in values]
        whole = int(expected[-1]["steps"]) / float(expected[-1]["seconds"])
        assert speeds and min(speeds) < 2 * whole and max(speeds) > whole / 2


def test_going_on_adds_a_file(tmp_path):
    argv = ["train", *QUICK, "--out", tmp_path / "out", "--tensorboard", tmp_path / "board"]
    assert run(*argv, "--episodes", "3").returncode == 0
    assert run(*argv, "--episodes", "5", "--resume", tmp_path / "out").returncode == 0
    files = sorted((tmp_path / "board" / "seed-1").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [[step for _, step, _ in events(path)] for path in files] == [[1, 2, 3], [4, 5]]


def test_what_cannot_be_written_is_told(tmp_path):
    done = run("train", *QUICK, "--episodes", "1", "--tensorboard", "/nowhere/board")
    assert done.returncode == 1 and b"--tensorboard /nowhere/board" in done.stderr
    (tmp_path / "seed-1").touch()
    done = run("train", *QUICK, "--episodes", "1", "--tensorboard", tmp_path)
    assert done.returncode == 1 and b"seed-1" in done.stderr and done.stdout == b""
