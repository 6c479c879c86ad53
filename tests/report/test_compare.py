"""mpactl simulate and compare: figures that theory knows, what must hold whatever the load, and what is
said when something is wrong."""
import csv
import json
import math

import pytest

from study import (BURSTY, DAY, KEYS, MANIFEST, MEMORY_KEYS, STEADY, azure, compare, memory_manifest, recommenders, run,
                   traces)


def by_name(rows, function="*"):
    return {r["recommender"]: r for r in rows if r["function"] == function}


# --- what must hold ----------------------------------------------------------------------------------------
def test_every_line_has_its_keys_and_adds_up(tmp_path):
    trace = azure(tmp_path, [("busy", 600, 50), ("calm", 12, 200), ("rare", 1, 20)])
    rows = compare(tmp_path, *traces(trace, STEADY), *recommenders("threshold", "oracle"))
    assert [list(r) for r in rows] == [KEYS] * len(rows) and len(rows) == 2 * (1 + 3) + 2 * (1 + 1)
    for r in rows:
        assert 0 <= r["violation_ratio"] <= 1 and 0 < r["cpu_utilization"] <= 1
        assert r["replicas_mean"] >= 1 and r["requests"] > 0 and r["p99_ms"] > 0
        same = {o["requests"] for o in rows if (o["trace"], o["function"]) == (r["trace"], r["function"])}
        assert same == {r["requests"]}, "recommenders met different loads"
        if r["recommender"] == "oracle":
            assert r["cost_vs_oracle"] == 1
    for whole in (r for r in rows if r["function"] == "*"):
        parts = [r for r in rows if r["function"] != "*" and r["trace"] == whole["trace"]
                 and r["recommender"] == whole["recommender"]]
        assert whole["requests"] == sum(r["requests"] for r in parts)
        assert whole["actions"] == sum(r["actions"] for r in parts)
        assert whole["cpu_core_seconds"] == pytest.approx(sum(r["cpu_core_seconds"] for r in parts))
        assert whole["violation_ratio"] * whole["requests"] == pytest.approx(
            sum(r["violation_ratio"] * r["requests"] for r in parts))
        worst = max(parts, key=lambda r: r["p99_ms"] / r["goal_ms"])
        assert (whole["p99_ms"], whole["goal_ms"]) == (worst["p99_ms"], worst["goal_ms"])


def test_cost_is_over_the_oracle_s_on_the_same_functions(tmp_path):
    both = by_name(compare(tmp_path, *traces(STEADY), *recommenders("threshold", "oracle")))
    alone = by_name(compare(tmp_path, *traces(STEADY), *recommenders("threshold")))
    ratio = both["threshold"]["cpu_core_seconds"] / both["oracle"]["cpu_core_seconds"]
    assert both["threshold"]["cost_vs_oracle"] == pytest.approx(ratio)
    assert alone == {"threshold": both["threshold"]}, "the oracle is run, and not shown"
    without = by_name(compare(tmp_path, *traces(STEADY), *recommenders("threshold"), "--no-oracle"))
    assert without["threshold"] == {**both["threshold"], "cost_vs_oracle": None}


def test_results_depend_on_the_seed_alone(tmp_path):
    trace = azure(tmp_path, [(f"f{i}", 5 * i, 30) for i in range(1, 9)])
    every = []
    for n, more in enumerate((["--jobs", "1"], ["--jobs", "2"], ["--jobs=2"], ["--seed", "2"])):
        files = {kind: tmp_path / f"{n}.{kind}" for kind in ("json", "html")}
        done = run("compare", *traces(trace, BURSTY), *recommenders("threshold"), "--functions", *more,
                   *(word for kind, file in files.items() for word in (f"--{kind}", file)))
        assert done.returncode == 0, done.stderr.decode()
        every.append([done.stdout, *(f.read_bytes() for f in files.values())])
    assert every[0] == every[1] == every[2]
    assert all(a != b for a, b in zip(every[0], every[3]))


def test_a_known_load_gives_known_figures(tmp_path):
    """Poisson arrivals at 20/s, each 10 ms of CPU: 36,000 in half an hour, within five standard deviations;
    what is used is their CPU; the default goal is twice the p99 execution time."""
    row = by_name(compare(tmp_path, *traces("poisson:rate=20,span=1800,demand=10,p99=10"),
                          *recommenders("threshold")))["threshold"]
    assert abs(row["requests"] - 36000) < 5 * math.sqrt(36000)
    assert row["cpu_utilization"] * row["cpu_core_seconds"] == pytest.approx(row["requests"] * 0.01, rel=1e-3)
    assert row["goal_ms"] == pytest.approx(20)
    fixed = compare(tmp_path, *traces("poisson:rate=20,span=1800,demand=10,p99=10"), *recommenders("threshold"),
                    "--initial", "3x500m", "--interval", "1h")
    assert fixed[0]["cpu_core_seconds"] == pytest.approx(3 * 0.5 * 1800), "nothing decided: what it began with"
    assert fixed[0]["actions"] == 0 and fixed[0]["replicas_mean"] == 3


def test_functions_without_requests(tmp_path):
    (tmp_path / "idle.txt").write_text("0\n" * 120)
    rows = compare(tmp_path, *traces(f"rps:{tmp_path}/idle.txt"), *recommenders("threshold"))
    assert [(r["requests"], r["violation_ratio"], r["p99_ms"]) for r in rows] == [(0, None, None)] * 2


def test_functions_on_the_same_node_get_in_each_other_s_way(tmp_path):
    """Three functions need 0.9 cores each: alone all is well, on one core together nothing is."""
    trace = azure(tmp_path, [(f"f{i}", 540, 100) for i in range(3)], minutes=10)
    alone = by_name(compare(tmp_path, *traces(trace), *recommenders("threshold"), "--no-oracle"))
    shared = by_name(compare(tmp_path, *traces(trace), *recommenders("threshold"), "--no-oracle",
                             "--nodes", "1", "--cores", "1", "--initial", "1x300m"))
    assert alone["threshold"]["violation_ratio"] < 0.1
    assert shared["threshold"]["violation_ratio"] > 0.9
    assert shared["threshold"]["requests"] > 0


def fixed_size(tmp_path, load, *options, initial="1x1000m"):
    """What comes of a size that nobody changes in an hour."""
    rows = by_name(compare(tmp_path, *traces(f"poisson:{load},span=3600"), *recommenders("threshold"), "--no-oracle",
                           "--initial", initial, "--interval", "1h", *options))
    return rows["threshold"]


def test_the_first_request_of_a_replica_pays_the_cold_start(tmp_path):
    """Once: the CPU that is used is that of all requests and of the cold start."""
    used = [row["cpu_utilization"] * row["cpu_core_seconds"] for row in
            (fixed_size(tmp_path, "rate=5,demand=10,p99=10", *more) for more in ([], ["--cold-cpu", "20s"]))]
    assert used[1] - used[0] == pytest.approx(20)


def test_crashes_lose_requests(tmp_path):
    """A replica is up for ten seconds on average, and starts for two. Who comes in the first of the two waits for longer
    than the goal."""
    calm, crashing = (fixed_size(tmp_path, "rate=20,demand=1,p99=1", "--goal", "1s", *more)
                      for more in ([], ["--crashes", "360"]))
    assert calm["violation_ratio"] == 0
    assert crashing["requests"] == calm["requests"]
    assert crashing["violation_ratio"] == pytest.approx(1 / 12, rel=0.2)
    stuck = fixed_size(tmp_path, "rate=20,demand=1000,p99=1000", "--crashes", "360", initial="50x1000m")
    assert stuck["violation_ratio"] > 0.05, "who is in it is lost"


def test_concurrency_makes_a_queue(tmp_path):
    """One at a time, each 10 ms, at half of what that takes: M/D/1. Its waits exceed t services with a chance of
    0.661 exp(-1.2564 t), by its roots: p99 is 43.4 ms. Without a bound they run side by side, on cores of their own."""
    load = "rate=50,demand=10,p99=10"
    beside, one = (fixed_size(tmp_path, load, *more) for more in ([], ["--concurrency", "1"]))
    assert beside["p99_ms"] < 15
    assert one["p99_ms"] == pytest.approx(43.4, rel=0.06)


def test_what_replicas_are_like_is_said(tmp_path):
    said = run("compare", *traces("poisson:rate=1,span=60"), *recommenders("threshold"), "--no-oracle", "--cold-cpu=400ms",
               "--crashes=2", "--concurrency=10").stdout.decode()
    assert ("resizes take 0.5s; their first request takes 0.4s more CPU; each crashes 2 times an hour; "
            "at most 10 requests in one at once.") in said
    refused = run("compare", *traces("poisson:rate=1,span=60"), "--concurrency=1.5")
    assert refused.returncode == 2 and b"--concurrency: they are counts" in refused.stderr


def test_an_mpa_is_tried_as_it_is_written(tmp_path):
    (tmp_path / "mpa.yaml").write_text(MANIFEST)
    rows = compare(tmp_path, *traces("poisson:rate=30,span=1800,demand=20,p99=60"), "--mpa", tmp_path / "mpa.yaml")
    assert {r["recommender"] for r in rows} == {"threshold"}
    assert rows[0]["goal_ms"] == 123
    assert 2 <= rows[0]["replicas_mean"] <= 3
    per_replica = rows[0]["cpu_core_seconds"] / rows[0]["replicas_mean"] / 1800
    assert 0.25 <= per_replica <= 0.5
    own = compare(tmp_path, *traces(STEADY), "--mpa", tmp_path / "mpa.yaml", "--goal", "1.5s")
    assert own[0]["goal_ms"] == 1500


# --- memory --------------------------------------------------------------------------------------------------
GIB_MIB = 1024


def test_memory_of_a_trace_counts_where_an_mpa_sets_it(tmp_path):
    """An idle replica of 200 MiB begins with 400, one that no row tells of with 192; hpa leaves that alone, vpa takes
    away what is more than is used and a margin, and gives no less than its 250 MiB."""
    functions = [("large", 600, 50), ("unknown", 600, 50)]
    trace = azure(tmp_path, functions, memory={"large": 200})
    (tmp_path / "mpa.yaml").write_text(memory_manifest("16Mi", "1Gi"))
    mpa = ["--mpa", tmp_path / "mpa.yaml", *recommenders("hpa", "vpa", "oracle")]
    rows = compare(tmp_path, *traces(trace), *mpa)
    assert [list(r) for r in rows] == [KEYS + MEMORY_KEYS] * len(rows)
    mib = {(r["recommender"], r["function"]): r["memory_gib_seconds"] * GIB_MIB / r["replicas_mean"] / 1800
           for r in rows if r["recommender"] != "oracle" and r["function"] != "*"}
    assert mib["hpa", "large"] == pytest.approx(400) and mib["hpa", "unknown"] == pytest.approx(192)
    assert 200 < mib["vpa", "large"] < 300 and 249 < mib["vpa", "unknown"] < 251
    for r in rows:
        if r["recommender"] == "oracle":
            assert [r[k] for k in MEMORY_KEYS] == [None] * 3, "it is never short of memory"
        elif r["function"] != "*":
            used = r["memory_utilization"] * r["memory_gib_seconds"] * GIB_MIB / r["replicas_mean"] / 1800
            assert used == pytest.approx(200 if r["function"] == "large" else 96, rel=0.05)
            assert r["memory_kills"] == 0
    for whole in (r for r in rows if r["function"] == "*" and r["recommender"] != "oracle"):
        parts = [r for r in rows if r["function"] != "*" and r["recommender"] == whole["recommender"]]
        assert whole["memory_gib_seconds"] == pytest.approx(sum(r["memory_gib_seconds"] for r in parts))
    (tmp_path / "mpa.yaml").write_text(memory_manifest("16Mi", "1Gi", "cpu"))
    without = compare(tmp_path, *traces(trace), *mpa)
    assert [list(r) for r in without] == [KEYS] * len(without)
    unread = compare(tmp_path, *traces(azure(tmp_path, functions)), *mpa)
    assert [{**r, "trace": ""} for r in without] == [{**r, "trace": ""} for r in unread], "nobody asked for it"


def test_too_little_memory_is_seen(tmp_path):
    """97 MiB are enough for one request in a replica of 96, and 500m are not enough for one at a time."""
    (tmp_path / "mpa.yaml").write_text(memory_manifest("97Mi", "97Mi", "memory"))
    argv = [*traces("poisson:rate=30,span=600,demand=20,p99=60"), *recommenders("threshold"), "--mpa",
            tmp_path / "mpa.yaml"]
    short = compare(tmp_path, *argv)[0]
    done = run("compare", *argv)
    assert short["memory_kills"] > 100 and short["violation_ratio"] > 0.3
    head, line = (x.split() for x in done.stdout.decode().splitlines()[1:3])
    assert head[-5:] == ["MEM", "GIB-H", "MEM", "USED", "KILLS"] and line[-1] == f"{short['memory_kills']:,}"
    assert "an idle replica uses what its trace says, else 96Mi" in done.stdout.decode()
    (tmp_path / "mpa.yaml").write_text(memory_manifest("97Mi", "1Gi", "memory"))
    enough = compare(tmp_path, *argv)[0]
    assert enough["memory_kills"] == 0 and enough["violation_ratio"] < short["violation_ratio"] / 2
    plain = run("compare", *traces(STEADY), *recommenders("threshold")).stdout.decode()
    assert "MEM" not in plain and "Memory" not in plain


def test_simulate_shows_memory_over_time(tmp_path):
    (tmp_path / "mpa.yaml").write_text(memory_manifest("16Mi", "1Gi"))
    table = tmp_path / "out.csv"
    done = run("simulate", *traces(STEADY), *recommenders("vpa"), "--mpa", tmp_path / "mpa.yaml", "--changes", "--csv",
               table)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().split("\n\n")[0].splitlines()
    assert lines[1].split()[-3:] == ["MEMORY", "KILLS", "DECISION"]
    assert "192Mi" in lines[2] and "memory 192Mi → 250Mi" in lines[2]
    points = list(csv.DictReader(table.open()))
    assert float(points[0]["memory_bytes"]) == 192 << 20 and float(points[-1]["memory_bytes"]) == 250 << 20
    assert {p["memory_kills"] for p in points} == {"0"}


# --- simulate ------------------------------------------------------------------------------------------------
def test_simulate_shows_every_change_with_its_reason(tmp_path):
    table = tmp_path / "out.csv"
    argv = ["simulate", *traces(DAY), *recommenders("threshold"), "--changes"]
    done = run(*argv, "--csv", table, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads((tmp_path / "out.json").read_text())[0]
    lines = done.stdout.decode().split("\n\n")[0].splitlines()[2:]
    assert len(lines) == result["actions"] > 0
    points = list(csv.DictReader(table.open()))
    assert len(points) == 3600 / 15
    changed = [p for p in points if p["changed"] == "1"]
    assert len(changed) == result["actions"]
    assert all(p["reason"] in line for p, line in zip(changed, lines)) and all("→" in p["reason"] for p in changed)
    assert sum(float(p["replicas"]) for p in points) / len(points) == pytest.approx(result["replicas_mean"])
    assert sum(float(p["requests_per_s"]) * 15 for p in points) == pytest.approx(result["requests"])


def test_simulate_shows_as_many_lines_as_asked_for(tmp_path):
    def lines(*more):
        done = run("simulate", *traces(STEADY), *more)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().split("\n\n")[0].splitlines()[2:]
    assert len(lines("--every", "15s")) == 1800 / 15
    assert len(lines("--every", "10m")) == 3
    assert len(lines()) == 30
    trace = azure(tmp_path, [("busy", 600, 50), ("calm", 12, 200)])
    text = run("simulate", *traces(trace), "--no-oracle").stdout.decode()
    assert text.startswith("busy of "), "the function with most requests"
    assert run("simulate", *traces(trace), "--function", "calm").stdout.decode().startswith("calm of ")


# --- what is said ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("argv, status, says", [
    (["compare"], 2, "--trace: none is given"),
    (["compare", "--trace"], 2, "--trace needs a value"),
    (["compare", "--nothing"], 2, "no such option"),
    (["compare", *traces("nothing:x")], 2, "must begin with azure:"),
    (["compare", *traces("poisson:rate=-1")], 2, "rate=-1"),
    (["compare", *traces("poisson:rate=1", "rps:/nowhere/x.txt")], 1, "/nowhere/x.txt"),
    (["compare", *traces(STEADY), *recommenders("nobody")], 2, "there are "),
    (["compare", *traces(STEADY), *recommenders("oracle:x=1")], 2, "no parameter x"),
    (["compare", *traces(STEADY), "--goal", "soon"], 2, "--goal"),
    (["compare", *traces(STEADY), "--seed", "1.5"], 2, "whole numbers"),
    (["compare", *traces(STEADY), "--jobs", "0"], 2, "--jobs"),
    (["compare", *traces(STEADY), "--nodes", "2"], 2, "add --cores"),
    (["compare", *traces(STEADY), "--cores", "2"], 2, "add --nodes"),
    (["compare", *traces(STEADY), "--initial", "2"], 2, "REPLICASxCPU"),
    (["compare", *traces(STEADY), "--initial", "0x500m"], 2, "REPLICASxCPU"),
    (["compare", *traces(STEADY), "--mpa", "/nowhere/mpa.yaml"], 1, "/nowhere/mpa.yaml"),
    (["compare", *traces(STEADY), "--json", "/nowhere/out.json"], 1, "can be written"),
    (["compare", *traces(STEADY), "--changes"], 2, "no such option"),
    (["compare", *traces(STEADY), "--csv", "out.csv"], 2, "no such option"),
    (["simulate", *traces(STEADY, STEADY)], 2, "use mpactl compare"),
    (["simulate", *traces(STEADY), *recommenders("threshold", "oracle")], 2, "use mpactl compare"),
    (["simulate", *traces(STEADY), "--function", "nobody"], 2, "has none of this name"),
    (["simulate", *traces(STEADY), "--changes", "--every", "1m"], 2, "--changes"),
])
def test_what_is_wrong_is_told(argv, status, says):
    done = run(*argv)
    message = done.stderr.decode()
    assert done.returncode == status and done.stdout == b""
    assert message.startswith("mpactl: ") and message.count("\n") == 1 and says in message
    assert message.count(": ") >= 3, "what: why: what to do"


def test_a_bad_file_is_told_with_its_place(tmp_path):
    (tmp_path / "bad.txt").write_text("1\n2\nx\n")
    done = run("compare", *traces(f"rps:{tmp_path}/bad.txt"))
    assert done.returncode == 1 and f"{tmp_path}/bad.txt:3:1: " in done.stderr.decode()
    (tmp_path / "mpa.yaml").write_text(MANIFEST.replace("minReplicas: 2", "minReplicas: 9"))
    done = run("compare", *traces(STEADY), "--mpa", tmp_path / "mpa.yaml")
    assert done.returncode == 1 and "mpactl validate" in done.stderr.decode()
    (tmp_path / "two.yaml").write_text(f"{MANIFEST}\n---\n{MANIFEST}")
    done = run("compare", *traces(STEADY), "--mpa", tmp_path / "two.yaml")
    assert done.returncode == 1 and "it has 2 " in done.stderr.decode()


def test_a_full_disk_is_no_success():
    done = run("compare", *traces("poisson:rate=1,span=60"), "--json", "/dev/full")
    assert done.returncode == 1 and "could not be written" in done.stderr.decode()


def test_help_names_all_that_can_be_asked_for():
    for command in ("compare", "simulate"):
        done = run(command, "--help")
        text = done.stdout.decode()
        assert done.returncode == 0 and done.stderr == b""
        for word in ("--trace", "--mpa", "azure:", "rps:", "poisson:", "threshold", "oracle"):
            assert word in text
    assert "--changes" in text


def test_names_cannot_speak_to_the_terminal(tmp_path):
    file = tmp_path / "a\x1b[31mb\u00e9.txt"
    file.write_text("5\n" * 60)
    bad = bytes(tmp_path) + b"/x\xff.txt"
    open(bad, "w").write("5\n" * 60)
    done = run("compare", "--trace", f"rps:{file}", "--trace", b"rps:" + bad, "--trace", f"rps:{file}",
               "--json", tmp_path / "out.json", "--html", tmp_path / "out.html", "--functions")
    assert done.returncode == 0 and b"\x1b" not in done.stdout
    names = [r["trace"] for r in json.loads((tmp_path / "out.json").read_text()) if r["function"] == "*"]
    assert names == ["rps:a?[31mb\u00e9.txt", "rps:x?.txt", "rps:a?[31mb\u00e9.txt (2)"]
