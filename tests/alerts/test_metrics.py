"""What a running controller exports: what docs/metrics.md says, and no more."""
import re
import subprocess

import pytest

from chart import ROOT
from world import MPACTL, Controller

SAMPLE = re.compile(r"^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? \S+$")
ROW = re.compile(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \| ([a-z_, ]*)\| (.+) \|$", re.M)


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    """With a policy that has hardly learned anything, so that one of its own is looked for."""
    directory = tmp_path_factory.mktemp("controller")
    subprocess.run([MPACTL, "policy", "--updates", "1", "--seed", "1", "--out", directory / "policy"], check=True,
                   stdout=subprocess.PIPE)
    with Controller(directory, f"--policy={directory}/policy", "--learn-after=1s") as running:
        yield running


@pytest.fixture(scope="module")
def text(controller):
    return controller.scrape_until("faasrl_mpa_mpa_learning_progress_ratio")


def families(text):
    """Name → type and labels, as told."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    found = {name: (kind, set()) for name, kind in types.items()}
    for name, labels in (SAMPLE.match(line).groups() for line in text.splitlines() if not line.startswith("#")):
        family = name if name in types else re.sub(r"_(bucket|sum|count)$", "", name)
        found[family][1].update(set(re.findall(r'([a-z_]+)="', labels or "")) - {"le"})
    return found


def documented():
    page = (ROOT / "docs/metrics.md").read_text()
    whole, each = page.split("## Each MPA")
    found = {}
    for part, more in ((whole, set()), (each, {"namespace", "name"})):
        for name, kind, labels, _ in ROW.findall(part):
            assert name not in found, f"{name} is there twice"
            found[name] = (kind, more | set(labels.replace(",", " ").split()))
    return found


def test_the_tables_are_what_is_exported(text):
    assert documented() == families(text)


def test_names_and_help_are_as_prometheus_wants_them(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0 and done.stdout == "", done.stdout
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.M))
    assert set(helps) == set(families(text)) and all(h.endswith(".") for h in helps.values())
    for name, (kind, _) in families(text).items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert re.match("(faasrl_mpa|process)_", name)


def value(text, sample):
    return float(re.search(rf"^{re.escape(sample)} (\S+)$", text, re.M)[1])


def test_figures_are_those_of_the_function(text):
    """As the API server and Prometheus of world.py tell them."""
    of = 'namespace="shop",name="web"'
    for name, expected in (("min_replicas", 1), ("max_replicas", 4), ("current_replicas", 1), ("ready_pods", 1),
                           ("latency_goal_seconds", 0.25), ("requests_per_second", 10), ("cpu_usage_cores", 0.12),
                           ("cpu_utilization_ratio", 0.6), ("cpu_throttled_ratio", 0.01), ("own_policy", 0)):
        assert value(text, f"faasrl_mpa_mpa_{name}{{{of}}}") == expected, name
    # 8 of 10 within 0.1 s, the rest within 0.5 s: the 99th of 100 is at 0.1 + 0.4 * 19 / 20.
    assert abs(value(text, f"faasrl_mpa_mpa_latency_seconds{{{of}}}") - 0.48) < 1e-9
    assert value(text, f'faasrl_mpa_mpa_cpu_request_cores{{{of},container="function"}}') == 0.2
    assert 0.1 <= value(text, f'faasrl_mpa_mpa_cpu_recommended_cores{{{of},container="function"}}') <= 0.4
    assert value(text, f'faasrl_mpa_mpa_condition{{{of},condition="FallbackActive",reason="Bootstrapping"}}') == 1
    assert value(text, f'faasrl_mpa_mpa_learning_stage{{{of},stage="Bootstrapping"}}') == 1
    began, decided, started = (value(text, s) for s in (
        f"faasrl_mpa_mpa_learning_stage_start_timestamp_seconds{{{of}}}",
        f"faasrl_mpa_mpa_last_decision_timestamp_seconds{{{of}}}", "process_start_time_seconds"))
    assert started - 1 <= began <= decided + 1
    assert value(text, "faasrl_mpa_interval_seconds") == 1


def test_without_series_of_single_mpas(tmp_path):
    with Controller(tmp_path, "--policy=off", "--per-mpa-metrics=false") as lean:
        text = lean.scrape_until('mpas_by_condition{condition="Ready",status="True"} 1')
    assert "faasrl_mpa_mpa_" not in text
