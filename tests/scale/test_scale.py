"""What `make bench-scale` judges by, on figures and answers that are made up: no cluster."""
import json
import math
import re
import runpy
import time
from pathlib import Path

import pytest

import judge
import measure
import objects
import page
import parties
import place
import tell

HERE = Path(__file__).parent
SIZE = 100


class Clock:
    """Time that goes on by sleeping alone."""

    def __init__(self, monkeypatch, at=1000.0):
        self.at = at
        monkeypatch.setattr(measure, "time", self)

    def monotonic(self):
        return self.at

    def sleep(self, seconds):
        self.at += seconds


# --- what a party tells ------------------------------------------------------------------------------
OURS = """# HELP faasrl_mpa_decisions_total decisions
faasrl_mpa_pass_duration_seconds_sum 0.4
faasrl_mpa_pass_duration_seconds_count {passes}
faasrl_mpa_last_pass_timestamp_seconds {last}
faasrl_mpa_decisions_total{{action="None"}} {none}
faasrl_mpa_decisions_total{{action="Rescale"}} 7
faasrl_mpa_mpas_by_condition{{condition="Ready",status="True"}} {ready}
faasrl_mpa_mpas_by_condition{{condition="Ready",status="False"}} 3
faasrl_mpa_mpas_by_condition{{condition="Limited",status="True"}} 40
faasrl_mpa_prometheus_queries_total{{metric="cpu",result="succeeded"}} {queries}
faasrl_mpa_prometheus_queries_total{{metric="cpu",result="failed"}} {failed}
faasrl_mpa_metrics_dropped_total {dropped}
faasrl_mpa_kube_requests_total{{method="PUT",code="200"}} 55
"""
BEFORE = {"passes": 2, "last": 1000, "none": 193, "ready": SIZE, "queries": 8, "failed": 0, "dropped": 0}
AFTER = {"passes": 10, "last": 1120, "none": 993, "ready": SIZE, "queries": 40, "failed": 0, "dropped": 0}


def interval(before, after, seconds=120):
    made = measure.Interval.__new__(measure.Interval)
    made.before, made.after = parties.Exposed(before), parties.Exposed(after)
    made.seconds, made.cpu_s, made.memory = seconds, 0.4, (17.0, 18.0)
    return made


def ours(**changed):
    seen = interval(OURS.format(**BEFORE), OURS.format(**{**AFTER, **changed}))
    return {**measure.our_figures(seen), **measure.our_failures(seen.after)}


def test_decisions_are_those_that_the_controller_counted():
    found = ours()
    assert found["decisions"] == 800 and found["decisions_per_min"] == 400 and found["passes"] == 8
    assert found["cpu_ms_per_decision"] == pytest.approx(0.5) and found["pass_every_s"] == 15
    assert found["queries_per_pass"] == 4 and found["queries_per_min"] == 16
    assert ours(none=593)["decisions"] == 400  # half of what passes times MPAs are


@pytest.mark.parametrize("changed, why", [
    ({}, None), ({"none": 893}, None),  # a pass across the edge
    ({"none": 593}, "400 decisions in 8 passes over 100"), ({"none": 193}, "0 decisions in 8"),
    ({"passes": 2}, "decisions in 0 passes"), ({"ready": 99}, "99 of 100 MPAs are Ready"),
    ({"failed": 1}, "1 queries to Prometheus failed"), ({"dropped": 2}, "2 samples were left out")])
def test_a_run_of_ours_with_failures_does_not_count(changed, why):
    wrong = judge.broken("ours", SIZE, ours(**changed))
    assert wrong == [] if why is None else len(wrong) == 1 and why in wrong[0], wrong


def test_failures_before_and_after_the_interval_are_seen():
    assert judge.broken("ours", SIZE, {**ours(), **measure.our_failures(parties.Exposed(OURS.format(**{**AFTER, "failed": 5})))})


@pytest.mark.parametrize("errors, decisions, whole", [(0, 390, True), (3, 390, True), (4, 390, False), (0, 0, False)])
def test_hpas_that_could_not_be_reconciled_do_not_count(errors, decisions, whole):
    name = measure.RECONCILED
    seen = interval(f'{name}{{action="none",error="none"}} 100\n{name}{{action="none",error="internal"}} 50\n',
                    f'{name}{{action="none",error="none"}} {100 + decisions - errors}\n'
                    f'{name}{{action="none",error="internal"}} {50 + errors}\n')
    total = seen.delta(name)
    found = {"decisions": total, "failed": total - seen.delta(name, 'error="none"')}
    assert found == {"decisions": decisions, "failed": errors}
    assert (judge.broken("hpa", SIZE, found) == []) is whole


def test_loops_of_the_recommender_are_those_it_counted():
    name = measure.LOOPS[0]
    before = f'{name}{{step="LoadVPAs"}} 3\n{name}{{step="total"}} 3\n'
    seen = interval(before, before.replace(" 3", " 5"))
    assert seen.delta(*measure.LOOPS) == 2
    assert judge.broken("vpa", SIZE, {"decisions": 200}) == [] and judge.broken("vpa", SIZE, {"decisions": 0})


def test_labels_are_told_apart():
    exposed = parties.Exposed('a{x="1",y="2"} 1\na{yx="1"} 2\nab{x="1"} 4\na 8\n')
    assert exposed["a"] == exposed.where("a") == 11
    assert exposed.where("a", 'x="1"') == exposed.where("a", 'y="2"', 'x="1"') == 1
    assert exposed.where("a", 'x="2"') == exposed.where("none") == 0


def test_the_controllers_metrics_are_those_of_its_documentation():
    """Which are held against a running one by make alerts-test."""
    documented = (place.ROOT / "docs/metrics.md").read_text()
    used = set(re.findall(r'"(faasrl_mpa_\w+)"', (HERE / "measure.py").read_text()))
    assert len(used) > 10
    assert not {name for name in used if f"`{name.removesuffix('_count')}`" not in documented}


class Scraped:
    """A party that counts who asks it."""

    metrics = "http://party"

    def __init__(self, monkeypatch):
        self.times = 0
        monkeypatch.setattr(parties, "read", lambda url: self.exposed())

    def exposed(self):
        self.times += 1
        return parties.Exposed("")

    def cpu_s(self):
        return self.times * 0.5

    def memory_mib(self):
        return 10.0, 12.0

    def alive(self):
        return True


def test_each_is_scraped_every_15_s_while_it_is_measured(monkeypatch):
    Clock(monkeypatch)
    party = Scraped(monkeypatch)
    seen = measure.Interval(party, 120)
    assert party.times == 8 + 2 and seen.seconds == 120
    assert seen.cpu_s == 8 * 0.5  # what is asked for at the ends is not its own


# --- from a metric to the patch ----------------------------------------------------------------------
def write(app, at, **changed):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(at))) + f".{round(at % 1 * 1e6):06}Z"
    return {"verb": "patch", "requestReceivedTimestamp": stamp, "responseStatus": {"code": 200}, "objectRef": {
        "resource": "deployments", "subresource": "scale", "namespace": "scale", "name": app}, **changed}


def test_the_first_write_after_the_change_counts():
    began = {"a": 1000.0, "b": 1018.0}
    pod = {"resource": "pods", "subresource": "resize", "name": "b-7d5f-x2z"}
    entries = [write("a", 999), write("a", 1000 + judge.STEP_WAIT_S + 1), write("a", 1011.5), write("a", 1003.25), write("c", 1001),
               write("b", 1019, verb="get"), write("b", 1020, responseStatus={"code": 409}),
               write("b", 1021, objectRef={"resource": "deployments", "name": "b"}), write("b", 1024, objectRef=pod)]
    assert judge.first_writes(entries, began) == {"a": pytest.approx(3.25), "b": pytest.approx(6)}
    assert judge.first_writes([write("a", 1000 + judge.STEP_WAIT_S + 1)], began) == {}


def test_who_was_not_acted_on_is_later_than_all_others():
    whole = {"stepped": 100, "took_s": [float(i) for i in range(100)]}
    assert judge.quantile(whole, 0.5) == 50 and judge.quantile(whole, 0.99) == 99
    assert judge.quantile({**whole, "took_s": whole["took_s"][:99]}, 0.99) == math.inf
    assert judge.quantile({**whole, "took_s": whole["took_s"][:51]}, 0.5) == 50
    assert judge.quantile({**whole, "took_s": whole["took_s"][:50]}, 0.5) == math.inf
    assert judge.quantile({"stepped": 20, "took_s": []}, 0.5) == math.inf
    assert judge.quantile(None, 0.5) is None


def test_functions_whose_load_waves_are_the_feeds():
    source = (HERE / "feed/fleet.go").read_text()
    assert "fnv.New32a()" in source and "sum%wavePart == 0" in source
    assert int(re.search(r"wavePart\s*= (\d+)", source)[1]) == judge.WAVE_PART
    # FNV-1a as its authors give it: "a" is e40c292c, "foobar" bf9cf968.
    assert [judge.waves(word) for word in ("a", "foobar")] == [n % 10 == 0 for n in (0xE40C292C, 0xBF9CF968)]
    assert 80 < sum(judge.waves(objects.name_of(i)) for i in range(1000)) < 120


@pytest.mark.parametrize("size, count", [(100, 20), (1000, 20), (5000, 50), (10000, 100)])
def test_steps_are_of_other_functions_at_other_moments(size, count):
    steps = judge.plan([objects.name_of(i) for i in range(size)])
    apps = [app for step in steps for app in step]
    assert len(steps) == 5 and len(apps) == len(set(apps)) == count and {len(s) for s in steps} == {count // 5}
    assert not any(map(judge.waves, apps))
    moments = sorted(i * judge.STEP_GAP_S % judge.SCRAPE_S for i in range(5))
    assert moments == [0, 3, 6, 9, 12]  # spread over a scrape and an interval


def test_steps_are_waited_for_and_taken_back(monkeypatch):
    clock, stepped = Clock(monkeypatch, 50000.0), []

    def step(apps, factor):
        stepped.append((clock.at, list(apps), factor))
        return clock.at

    class Writes:
        def __init__(self, account):
            assert account == "admin"

        def entries(self, namespace):
            changed = [(at, app) for at, apps, factor in stepped for app in apps]
            return [write(app, at + 7) for at, app in changed[:-1] if clock.at >= at + 7]  # the last is not acted on

    monkeypatch.setattr(parties, "step", step)
    monkeypatch.setattr(measure, "Writes", Writes)
    found = measure.reaction(SIZE, "admin")
    assert found == {"stepped": 20, "took_s": pytest.approx([7.0] * 19)}
    assert [at - 50000 for at, _, _ in stepped[:5]] == [0, 18, 36, 54, 72]
    at, apps, factor = stepped[5]
    assert factor == 1 and sorted(apps) == sorted(a for _, s, _ in stepped[:5] for a in s) and 672 <= at - 50000 < 690


def test_writes_of_status_are_not_read(monkeypatch, tmp_path):
    monkeypatch.setattr(place.harness, "RUN", tmp_path)
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs/audit.log"
    log.write_text("")
    audit = measure.Writes("admin")
    with log.open("a") as file:
        for name in ("scale", "status"):
            entry = write("a", 1000, user={"username": "admin"})
            entry["objectRef"]["subresource"] = name
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")
    assert [e["objectRef"]["subresource"] for e in audit.entries("scale")] == ["scale"]


# --- asking again ------------------------------------------------------------------------------------
@pytest.mark.parametrize("answers, status, tries", [
    ([201], 201, 1), ([429, 503, 201], 201, 3), ([404], 404, 1), ([500] * 20, 500, objects.TRIES)])
def test_a_server_that_is_busy_is_asked_again(monkeypatch, answers, status, tries):
    asked, slept, left = [], [], list(answers)
    monkeypatch.setattr(objects, "ask", lambda *given: asked.append(given) or (left.pop(0), {}))
    assert objects.insist("POST", "/x", {"a": 1}, pause=slept.append)[0] == status
    assert len(asked) == tries == len(slept) + 1 and set(map(str, asked)) == {"('POST', '/x', {'a': 1}, False)"}
    assert slept == sorted(slept) and sum(slept) < 30


def test_objects_are_made_through_it(monkeypatch):
    monkeypatch.setattr(objects, "names", lambda kind: {"fn-00001", "old"})
    monkeypatch.setattr(time, "sleep", lambda _: None)
    asked = []

    def ask(method, path, body=None, patch=False):
        asked.append((method, path.rsplit("/", 1)[-1]))
        return (429, {}) if asked.count(asked[-1]) == 1 else (200, {})

    monkeypatch.setattr(objects, "ask", ask)
    monkeypatch.setattr(objects.insist, "__defaults__", (None, False, lambda _: None))
    objects.make("hpas", ["fn-00001", "fn-00002"])
    assert sorted(asked) == sorted([("POST", "horizontalpodautoscalers")] * 2 + [("DELETE", "old")] * 2)


# --- what is told --------------------------------------------------------------------------------------
def measured(size, **changed):
    reaction = {"stepped": 20, "took_s": [5.0 + i for i in range(20)]}
    common = {"when": "2026-11-19", "machine": "2 cores", "load": 1.5, "broken": [], "reaction": reaction}
    found = {
        "ours": {**common, "rss_mib": 50.0, "rss_most_mib": 51.0, "pass_cpu_s": 0.5, "pass_s": 1.0, "pass_every_s": 15.0,
                 "cpu_s_per_min": 2.0, "cpu_ms_per_decision": 0.05, "queries_per_pass": 4, "queries_per_min": 16},
        "hpa": {**common, "when": "2026-11-20", "rss_mib": 300.0, "cpu_s_per_min": 40.0, "cpu_ms_per_decision": 2.0},
        "vpa": {**common, "rss_mib": 900.0, "cpu_s_per_min": 30.0, "reaction": None}}
    for name, more in changed.items():
        found[name].update(more)
    return {size: found}


def cell(sizes, label, column):
    row = next(r for r in tell.table(sizes).splitlines() if f"| {label} |" in r)
    return row.split("|")[3 + column].strip()


def test_the_table_says_what_does_not_count():
    sizes = measured(10000)
    assert "does it count" not in tell.table(sizes) and tell.broken(sizes) == []
    sizes = measured(10000, hpa={"broken": ["9 of 90 reconciliations ended with an error"]})
    assert cell(sizes, "**does it count?**", 0) == "yes"
    assert cell(sizes, "**does it count?**", 1) == "**broken**: 9 of 90 reconciliations ended with an error"
    assert tell.broken(sizes) == ["10,000 HPA controller: 9 of 90 reconciliations ended with an error"]


def test_the_table_says_who_was_not_acted_on():
    sizes = measured(1000, hpa={"reaction": {"stepped": 20, "took_s": [5.0] * 15}})
    label = "functions acted on, of those whose load changed"
    assert [cell(sizes, label, n) for n in range(3)] == ["20 of 20", "15 of 20", "–"]
    label = "a figure changes until the write, {}, s"
    assert [cell(sizes, label.format("p99"), n) for n in range(3)] == ["24.0", "over 600", "–"]
    assert [cell(sizes, label.format("p50"), n) for n in range(3)] == ["15.0", "5.0", "–"]
    assert cell(sizes, "requests to Prometheus per minute", 0) == "16"


def test_what_does_not_count_is_no_figure():
    assert {f["name"] for f in judge.figures(measured(10000))} == {
        "rss_10k_mpa_mib", "pass_10k_cpu_s", "pass_10k_s", "decided_every_10k_s", "queries_per_pass_10k",
        "hpa_cpu_per_object", "vpa_rss"}
    assert "vpa_rss" not in {f["name"] for f in judge.figures(measured(10000, vpa={"broken": ["no loop"]}))}
    assert judge.figures(measured(10000, ours={"broken": ["a"]})) == []
    both = {**measured(1000), **measured(10000, hpa={"broken": ["a"]})}
    assert "1000 objects" in next(f for f in judge.figures(both) if f["name"] == "hpa_cpu_per_object")["peer"]


@pytest.mark.parametrize("size, changed, told", [
    (10000, {}, None), (10000, {"ours": {"rss_mib": 64.5}}, "rss_10k_mpa_mib is 64.500, the goal is 64"),
    (10000, {"ours": {"pass_cpu_s": 1.1}}, "pass_10k_cpu_s"), (10000, {"ours": {"pass_every_s": 16}}, "decided_every_10k_s"),
    (10000, {"ours": {"queries_per_pass": 5}}, "queries_per_pass_10k is 5.000"),
    (10000, {"hpa": {"cpu_ms_per_decision": 0.9}}, "hpa_cpu_per_object is 18.000, the goal is 20"),
    (10000, {"vpa": {"rss_mib": 400.0}}, "vpa_rss is 8.000"), (10000, {"vpa": {"broken": ["x"]}}, "vpa_rss: no figures"),
    (1000, {}, "no figures at 10,000 MPAs")])
def test_goals_that_are_missed_are_told(size, changed, told):
    sizes = measured(size, **changed)
    wrong = judge.missed(sizes, judge.figures(sizes))
    assert wrong == [] if told is None else len(wrong) == 1 and told in wrong[0], wrong


@pytest.mark.parametrize("changed, flags, code", [
    ({}, [], 0), ({}, ["--check"], 0), ({"ours": {"rss_mib": 70.0}}, [], 0), ({"ours": {"rss_mib": 70.0}}, ["--check"], 1),
    ({"ours": {"broken": ["99 of 100 MPAs are Ready"]}}, [], 1)])
def test_the_command_fails_where_it_must(monkeypatch, tmp_path, changed, flags, code):
    (tmp_path / "build").mkdir()
    (tmp_path / "10000.json").write_text(json.dumps(measured(10000, **changed)[10000]))
    monkeypatch.setattr(tell, "OUT", tmp_path)
    monkeypatch.setattr(tell, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["run", "--tell", *flags])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(HERE / "run"))
    assert (ended.value.code != 0) == bool(code)  # words are told on stderr, and exit with 1


def test_the_page_has_each_partys_day_and_a_panel_of_ours_alone():
    sizes = {**measured(1000), **measured(10000, hpa={"broken": ["a"]})}
    text = page.text(sizes, tell.table(sizes))
    assert "- HPA controller: 2026-11-20, 2 cores, load of the machine 1.5" in text
    assert "- faasrl-mpa: 2026-11-19, 2 cores, load of the machine 1.5" in text
    drawn = page.svg(sizes)
    assert drawn.count("<polyline") == 3 + 3 + 1 + 1 and "memory, MiB, of faasrl-mpa alone" in drawn
    dots = {color: drawn.count(f'r="3" fill="{color}"') for color in page.COLORS.values()}
    assert dots == {page.COLORS["ours"]: 8, page.COLORS["hpa"]: 2, page.COLORS["vpa"]: 4}
    places = {re.search(r'y="(\d+)"', line)[1] for line in drawn.splitlines() if 'stroke="#999"' in line}
    assert len(places) == 2  # the panels of ours lie below
