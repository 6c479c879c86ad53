"""mpactl tune: settings that can be used, results that do not depend on chance, and what is said when something is
wrong."""
import json

import pytest

from study import BURSTY, STEADY, azure, compare, memory_manifest, recommenders, run, traces

KEYS = ["recommender", "tuned_for", "class", "trace", "function", "setting", "functions", "goal_met",
        "violation_ratio", "cost_vs_oracle"]
QUICK = ["--trials", "6"]


def tune(tmp_path, *argv):
    out = tmp_path / "tune.json"
    done = run("tune", *argv, *QUICK, "--json", out)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b"", "a bar is only for terminals"
    return json.loads(out.read_text()), done.stdout.decode()


def test_settings_do_in_compare_what_they_did_in_tune(tmp_path):
    trace = azure(tmp_path, [("busy", 600, 50), ("calm", 12, 200), ("rare", 1, 20)])
    found, table = tune(tmp_path, *traces(trace, BURSTY), *recommenders("hpa", "kpa"), "--judge-seed", "5")
    assert [list(f) for f in found] == [KEYS] * len(found)
    assert {f["function"] for f in found} == {"*", "busy", "calm", "bursty"}, "30 requests are too few"
    for name in ("hpa", "kpa"):
        mine = [f for f in found if f["recommender"] == name]
        assert [f["tuned_for"] for f in mine] == ["usual", "all", *["class"] * 3, *["function"] * 3]
        assert sum(f["functions"] for f in mine if f["tuned_for"] == "class") == 3
        assert next(f["setting"] for f in mine if f["tuned_for"] == "all") in table
        for f in mine:
            if f["tuned_for"] != "function":
                continue
            rows = compare(tmp_path, *traces(trace, BURSTY), *recommenders(f["setting"]), "--seed", "5")
            row = next(r for r in rows if r["function"] == f["function"] and r["recommender"] == f["setting"])
            assert f["violation_ratio"] == pytest.approx(row["violation_ratio"], rel=1e-6)
            assert f["cost_vs_oracle"] == pytest.approx(row["cost_vs_oracle"], rel=1e-6)


def test_memory_is_told_where_an_mpa_sets_it(tmp_path):
    (tmp_path / "mpa.yaml").write_text(memory_manifest("16Mi", "1Gi"))
    mpa = ["--mpa", tmp_path / "mpa.yaml"]
    load = traces("poisson:rate=10,span=600")
    found, table = tune(tmp_path, *load, *mpa, *recommenders("greedy", "oracle-requests"))
    assert [list(f) for f in found] == [KEYS + ["memory_gib_seconds", "memory_kills"]] * len(found)
    assert all(f["memory_gib_seconds"] > 0 and f["memory_kills"] >= 0 for f in found if f["recommender"] == "greedy")
    assert [f["memory_gib_seconds"] for f in found if f["recommender"] == "oracle-requests"] == [None]
    assert "MEM GIB-H  KILLS" in table
    one = next(f for f in found if f["tuned_for"] == "function")
    row = compare(tmp_path, *load, *mpa, *recommenders(one["setting"]), "--seed", "11")[0]
    assert one["memory_gib_seconds"] == pytest.approx(row["memory_gib_seconds"], rel=1e-6)
    assert one["memory_kills"] == row["memory_kills"]


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    argv = [*traces(STEADY, BURSTY), *recommenders("kpa")]
    one, two = tune(tmp_path, *argv, "--jobs", "1"), tune(tmp_path, *argv, "--jobs", "3")
    assert one == two
    assert one != tune(tmp_path, *argv, "--seed", "2")


def test_all_are_tuned_unless_some_are_named(tmp_path):
    found, _ = tune(tmp_path, "--trace", "poisson:rate=2,span=300")
    tuned = {f["recommender"] for f in found if f["tuned_for"] == "function"}
    assert tuned >= {"fixed", "hpa", "kpa", "vpa", "hpa+vpa", "ensure", "greedy", "feedforward"}
    assert {f["recommender"] for f in found} - tuned == {"threshold"}, "it has nothing to tune"


def test_oracles_are_shown_and_not_tuned(tmp_path):
    found, table = tune(tmp_path, *traces(STEADY), *recommenders("oracle", "oracle-requests"))
    assert [(f["recommender"], f["tuned_for"]) for f in found] == [("oracle-requests", "usual")]
    assert table.count("\noracle ") == 1


@pytest.mark.parametrize("argv, status, says", [
    ([], 2, "--trace: none is given"),
    (["--trace", STEADY, "--seed", "11"], 2, "--judge-seed"),
    (["--trace", STEADY, "--trials", "2.5"], 2, "whole numbers"),
    (["--trace", STEADY, "--trials", "1"], 2, "trials"),
    (["--trace", STEADY, "--recommender", "hpq"], 2, "no such recommender"),
    (["--trace", "poisson:rate=2,span=10"], 1, "--least-requests 100"),
    (["--trace", STEADY, "--json", "/nowhere/out.json"], 1, "--json /nowhere/out.json"),
    (["--trace", "rps:/nowhere"], 1, "/nowhere"),
])
def test_what_is_wrong_is_told(argv, status, says):
    done = run("tune", *argv)
    assert (done.returncode, done.stdout) == (status, b"")
    assert says in done.stderr.decode() and done.stderr.startswith(b"mpactl: ")


def test_help():
    done = run("tune", "--help")
    assert done.returncode == 0 and b"--judge-seed" in done.stdout
