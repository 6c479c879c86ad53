"""The alerts: each fires when it should, by Prometheus' own judgement, and not when it should not."""
import copy
import re
import subprocess

import pytest
import yaml

from chart import PLAIN, ROOT, alerts, of_kind, plain_text, render, rendered_rules

RULES = yaml.safe_load(PLAIN.read_text())
WITHOUT_MPAS = rendered_rules("metrics.perMpa=false")

OURS = 'job="faasrl-mpa",namespace="ops"'
ONE, TWO = f'{OURS},instance="a"', f'{OURS},instance="b"'
MPA = 'job="faasrl-mpa",namespace="shop",name="web",instance="a"'


def condition(kind, reason):
    return f'faasrl_mpa_mpa_condition{{{MPA},condition="{kind}",reason="{reason}"}}'


def steady(value, minutes=300):
    return f"{value}+0x{minutes}"


def queries(result, per_minute):
    return {f'faasrl_mpa_prometheus_queries_total{{{ONE},metric="cpu",result="{result}"}}': f"0+{per_minute}x60"}


def requests(code, per_minute):
    return {f'faasrl_mpa_kube_requests_total{{{ONE},method="PATCH",code="{code}"}}': f"0+{per_minute}x60"}


def latency(seconds, goal, mode="Auto"):
    return {f"faasrl_mpa_mpa_latency_seconds{{{MPA}}}": seconds, f"faasrl_mpa_mpa_latency_goal_seconds{{{MPA}}}": goal,
            f'faasrl_mpa_mpa_info{{{MPA},mode="{mode}",recommender="ppo"}}': steady(1)}


def stage(name, values):
    return {f'faasrl_mpa_mpa_learning_stage{{{MPA},stage="{name}"}}': values}


def shards(count, *held):
    return {f"faasrl_mpa_{name}{{{replica}}}": steady(value)
            for replica, mine in zip((ONE, TWO), held)
            for name, value in (("leader", 1), ("shards", count), ("shards_held", mine))}


LEADS = {f"faasrl_mpa_leader{{{ONE}}}": steady(1), f"faasrl_mpa_interval_seconds{{{ONE}}}": steady(15)}
LAST_PASS = f"faasrl_mpa_last_pass_timestamp_seconds{{{ONE}}}"
WEB = {"job": "faasrl-mpa", "namespace": "shop", "name": "web"}
WHOLE = {"job": "faasrl-mpa", "namespace": "ops"}

# Alert, what is measured (once a minute), when it is asked for, and the labels of what fires; None: nothing does.
CASES = [
    ("FaasrlMpaDown", {}, "6m", {}),
    ("FaasrlMpaDown", {}, "4m", None),
    ("FaasrlMpaDown", {f"faasrl_mpa_build_info{{{ONE}}}": steady(1)}, "20m", None),
    ("FaasrlMpaDown", {f"faasrl_mpa_build_info{{{ONE}}}": "1+0x3"}, "20m", {}),

    ("FaasrlMpaNoLeader", {f"faasrl_mpa_leader{{{ONE}}}": steady(0), f"faasrl_mpa_leader{{{TWO}}}": steady(0)},
     "3m", WHOLE),
    ("FaasrlMpaNoLeader", {f"faasrl_mpa_leader{{{ONE}}}": steady(1), f"faasrl_mpa_leader{{{TWO}}}": steady(0)},
     "20m", None),
    ("FaasrlMpaNoLeader", {f"faasrl_mpa_leader{{{ONE}}}": "0 0 1+0x10"}, "5m", None),

    ("FaasrlMpaSeveralLeaders", {f"faasrl_mpa_leader{{{ONE}}}": steady(1), f"faasrl_mpa_leader{{{TWO}}}": steady(1)},
     "3m", WHOLE),
    ("FaasrlMpaSeveralLeaders", {f"faasrl_mpa_leader{{{ONE}}}": steady(1), f"faasrl_mpa_leader{{{TWO}}}": steady(0)},
     "20m", None),

    ("FaasrlMpaNoLeader", shards(8, 3, 5), "20m", None),
    ("FaasrlMpaNoLeader", shards(8, 3, 4), "3m", WHOLE),
    ("FaasrlMpaSeveralLeaders", shards(8, 3, 5), "20m", None),
    ("FaasrlMpaSeveralLeaders", shards(8, 4, 5), "3m", WHOLE),

    ("FaasrlMpaPassesLate", {**LEADS, LAST_PASS: steady(0)}, "4m", {**WHOLE, "instance": "a"}),
    ("FaasrlMpaPassesLate", LEADS, "4m", {**WHOLE, "instance": "a"}),
    ("FaasrlMpaPassesLate", {**LEADS, LAST_PASS: "0+60x60"}, "30m", None),
    ("FaasrlMpaPassesLate", {f"faasrl_mpa_leader{{{ONE}}}": steady(0), LAST_PASS: steady(0),
                             f"faasrl_mpa_interval_seconds{{{ONE}}}": steady(15)}, "30m", None),

    ("FaasrlMpaPrometheusQueriesFailing", {**queries("failed", 1), **queries("succeeded", 3)}, "12m",
     {**WHOLE, "metric": "cpu"}),
    ("FaasrlMpaPrometheusQueriesFailing", {**queries("failed", 1), **queries("succeeded", 19)}, "30m", None),

    ("FaasrlMpaApiErrors", {**requests("503", 1), **requests("200", 9)}, "12m", WHOLE),
    ("FaasrlMpaApiErrors", {**requests("none", 1), **requests("200", 9)}, "12m", WHOLE),
    ("FaasrlMpaApiErrors", {**requests("409", 5), **requests("200", 5)}, "30m", None),
    ("FaasrlMpaApiErrors", {**requests("500", 1), **requests("200", 99)}, "30m", None),

    ("FaasrlMpaApiForbidden", requests("403", 1), "12m", {**WHOLE, "method": "PATCH"}),
    ("FaasrlMpaApiForbidden", requests("200", 1), "30m", None),

    ("FaasrlMpaGoalMissed", latency(steady(0.3), steady(0.25)), "16m", WEB),
    ("FaasrlMpaGoalMissed", latency(steady(0.3), steady(0.25)), "14m", None),
    ("FaasrlMpaGoalMissed", latency(steady(0.2), steady(0.25)), "1h", None),
    ("FaasrlMpaGoalMissed", latency(steady(0.3), steady(0.25), mode="Off"), "1h", None),
    ("FaasrlMpaGoalMissed", latency("0.3+0x10 0.1 0.3+0x10", steady(0.25)), "20m", None),

    ("FaasrlMpaNotReady", {condition("Ready", "OwnedByAnother"): steady(0)}, "16m", WEB),
    ("FaasrlMpaNotReady", {condition("Ready", "Following"): steady(1)}, "1h", None),
    ("FaasrlMpaNotReady", {condition("Ready", "LatencyMissing"): steady(0)}, "1h", None),

    ("FaasrlMpaNoMetrics", {condition("ScalingActive", "FailedGetMetrics"): steady(0)}, "16m", WEB),
    ("FaasrlMpaNoMetrics", {condition("ScalingActive", "LatencyMissing"): steady(0)}, "16m", WEB),
    ("FaasrlMpaNoMetrics", {condition("ScalingActive", "ScalingDisabled"): steady(0)}, "1h", None),
    ("FaasrlMpaNoMetrics", {condition("ScalingActive", "ValidMetricFound"): steady(1)}, "1h", None),

    ("FaasrlMpaFallbackActive", {condition("FallbackActive", "NoPolicy"): steady(1)}, "61m", WEB),
    # A new policy is looked for, then another reason comes: it is one fallback all the same.
    ("FaasrlMpaFallbackActive", {condition("FallbackActive", "Bootstrapping"): "1+0x30",
                                 condition("FallbackActive", "PolicyCannotDecide"): "_x30 1+0x60"}, "61m", WEB),
    ("FaasrlMpaFallbackActive", {condition("FallbackActive", "Retraining"): steady(1)}, "4h", None),
    ("FaasrlMpaFallbackActive", {condition("FallbackActive", "NotNeeded"): steady(0)}, "4h", None),

    ("FaasrlMpaRetrainingStuck", stage("Retraining", steady(1)), "121m", WEB),
    ("FaasrlMpaRetrainingStuck", stage("Retraining", "1+0x100"), "4h", None),
    ("FaasrlMpaRetrainingStuck", stage("Serving", steady(1)), "4h", None),

    # A node's no is believed for 5 minutes, then the resize is tried again.
    ("FaasrlMpaResizeInfeasible", {condition("ResizePending", "Infeasible"): "1+0x5 _x1 1+0x5 _x1 1+0x5 _x1 1+0x5"},
     "22m", WEB),
    ("FaasrlMpaResizeInfeasible", {condition("ResizePending", "Infeasible"): "1+0x5"}, "22m", None),
    ("FaasrlMpaResizeInfeasible", {condition("ResizePending", "Deferred"): steady(1)}, "1h", None),
]
SOME_NOT_READY = f'faasrl_mpa_mpas_by_condition{{{ONE},condition="Ready",status="False"}}'
CASES_WITHOUT_MPAS = [
    ("FaasrlMpaSomeNotReady", {SOME_NOT_READY: steady(2)}, "16m", WHOLE),
    ("FaasrlMpaSomeNotReady", {SOME_NOT_READY: steady(0)}, "1h", None),
]


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def unit_test(series, alert, at, labels, severity):
    fires = [] if labels is None else [{"exp_labels": {**labels, "severity": severity}}]
    return {"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
            "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": fires}]}


def check(rules, cases, tmp_path):
    bare = copy.deepcopy(rules)
    for rule in alerts(bare).values():
        del rule["annotations"]  # of which promtool asks for every letter; they have a test of their own
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(bare))
    tests = [unit_test(series, alert, at, labels, alerts(rules)[alert]["labels"]["severity"])
             for alert, series, at, labels in cases]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(
        {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", tmp_path / "test.yaml")


@pytest.mark.parametrize("alert", sorted({c[0] for c in CASES}))
def test_it_fires_when_it_should_and_only_then(alert, tmp_path):
    check(RULES, [c for c in CASES if c[0] == alert], tmp_path)


def test_without_series_of_single_mpas_their_sum_is_looked_at(tmp_path):
    check(WITHOUT_MPAS, CASES_WITHOUT_MPAS, tmp_path)
    assert set(alerts(RULES)) - set(alerts(WITHOUT_MPAS)) == {
        name for name, rule in alerts(RULES).items() if "_mpa_mpa_" in rule["expr"]}


def test_every_alert_has_cases_of_both_kinds():
    for cases, rules in ((CASES, RULES), (CASES_WITHOUT_MPAS, {"groups": WITHOUT_MPAS["groups"][1:]})):
        assert {c[0] for c in cases if c[3] is None} == {c[0] for c in cases if c[3] is not None} == set(alerts(rules))


def test_annotations_are_filled_in(tmp_path):
    series, when = latency(steady(0.3), steady(0.25)), "16m"
    rule = alerts(RULES)["FaasrlMpaGoalMissed"]
    test = unit_test(series, "FaasrlMpaGoalMissed", when, WEB, "warning")
    test["alert_rule_test"][0]["exp_alerts"][0]["exp_annotations"] = {
        "summary": "shop/web misses its latency goal",
        "description": "The latency at the goal's percentile has been over the goal for 15m, at last 300ms.",
        "runbook_url": "docs/alerts.md#faasrlmpagoalmissed"}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": [rule]}]}))
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    promtool("test", "rules", tmp_path / "test.yaml")


def test_prometheus_takes_the_rules(tmp_path):
    promtool("check", "rules", PLAIN)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(WITHOUT_MPAS))
    promtool("check", "rules", tmp_path / "rules.yaml")


def test_the_plain_file_is_what_the_chart_makes():
    assert PLAIN.read_text() == plain_text(), "make rules"


def test_every_alert_says_what_to_do():
    page = (ROOT / "docs/alerts.md").read_text()
    sections = set(re.findall(r"^## (FaasrlMpa\w+)$", page, re.M))
    every = {**alerts(RULES), **alerts(WITHOUT_MPAS)}
    assert sections == set(every)
    for name, rule in every.items():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{name.lower()}"
        assert "@" not in rule["expr"] + rule["for"] + rule["annotations"]["description"], "a value is missing"


def test_values_change_the_rules():
    assert not of_kind(render(), "PrometheusRule")
    changed = alerts(rendered_rules(
        "prometheusRule.disabled={FaasrlMpaDown}", "prometheusRule.alertLabels.team=a",
        "prometheusRule.alerts.goalMissed.for=1h", "prometheusRule.runbookUrl=https://wiki.example/alerts",
        json_settings=["prometheusRule.alerts.goalMissed.factor=1.5"]))
    assert set(alerts(RULES)) - set(changed) == {"FaasrlMpaDown"}
    missed = changed["FaasrlMpaGoalMissed"]
    assert missed["for"] == "1h" and "> 1.5 * " in missed["expr"]
    assert missed["labels"] == {"severity": "warning", "team": "a"}
    assert missed["annotations"]["runbook_url"] == "https://wiki.example/alerts#faasrlmpagoalmissed"
