"""The dashboard: as Grafana wants it, and about metrics that there are."""
import itertools
import json
import re
import subprocess

import pytest
import yaml

from chart import DASHBOARDS, alerts, dashboards, of_kind, render, rendered_rules
from test_metrics import documented

# What Grafana fills in, with something of the same kind.
FILLED = {"$__rate_interval": "5m", "$namespace": "shop", "$mpa": "web"}
EVERY = pytest.mark.parametrize("name", [p.name for p in DASHBOARDS])


def panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def expressions(board):
    return [t["expr"] for p in panels(board) for t in p.get("targets", [])]


def filled(expression):
    for variable, value in FILLED.items():
        expression = expression.replace(variable, value)
    return expression


def metrics_in(expression):
    """Names of ours; the parts of a histogram by its name."""
    names = set(re.findall(r"\b(?:faasrl_mpa|process)_[a-z_]+", expression))
    return {re.sub(r"_bucket$", "", n) for n in names}


@EVERY
def test_panels_have_ids_of_their_own_and_do_not_overlap(name):
    board = dashboards()[name]
    ids = [p["id"] for p in panels(board)]
    assert len(ids) == len(set(ids)) > 10
    boxes = [(p["title"], *(p["gridPos"][k] for k in "xywh")) for p in board["panels"]]
    for title, x, y, w, h in boxes:
        assert x >= 0 and y >= 0 and w > 0 and h > 0 and x + w <= 24, title
    for (a, ax, ay, aw, ah), (b, bx, by, bw, bh) in itertools.combinations(boxes, 2):
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay, f"{a} lies on {b}"


@EVERY
def test_it_is_of_no_machine(name):
    board = dashboards()[name]
    assert "id" not in board and board["uid"] == "faasrl-mpa" and board["schemaVersion"] >= 36
    variables = {v["name"]: v for v in board["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "mpa"] and variables["datasource"]["type"] == "datasource"
    uses = [p["datasource"] for p in panels(board) if p["type"] != "row"]
    uses += [t["datasource"] for p in panels(board) for t in p.get("targets", [])]
    uses += [variables[v]["datasource"] for v in ("namespace", "mpa")]
    assert all(use == {"type": "prometheus", "uid": "${datasource}"} for use in uses)
    for panel in panels(board):
        assert panel["type"] == "row" or panel["targets"], panel["title"]
        refs = [t["refId"] for t in panel.get("targets", [])]
        assert len(refs) == len(set(refs))


@EVERY
def test_prometheus_takes_every_expression(name, tmp_path):
    rules = [{"record": f"x:{i}", "expr": filled(e)} for i, e in enumerate(expressions(dashboards()[name]))]
    assert rules and not [r for r in rules if "$" in r["expr"]], "a variable that FILLED does not know"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yaml"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


@EVERY
def test_every_metric_is_exported(name):
    """test_metrics.py holds the documentation to what a running controller exports."""
    board = dashboards()[name]
    asked = expressions(board) + [v["definition"] for v in board["templating"]["list"] if "definition" in v]
    assert all(metrics_in(e) for e in asked)
    assert set().union(*map(metrics_in, asked)) <= set(documented())


def test_every_metric_of_alerts_is_exported():
    for rules in (rendered_rules(), rendered_rules("metrics.perMpa=false")):
        for rule in alerts(rules).values():
            assert metrics_in(rule["expr"]) and metrics_in(rule["expr"]) <= set(documented())


def test_labels_are_exported():
    """A label that a metric does not have would match nothing, silently."""
    told = {name: labels | {"job", "instance", "le", "namespace"} for name, (_, labels) in documented().items()}
    asked = [e for board in dashboards().values() for e in expressions(board)]
    asked += [r["expr"] for r in alerts(rendered_rules()).values()]
    for expression in asked:
        for metric, labels in re.findall(r"(faasrl_mpa_[a-z_]+?)(?:_bucket)?\{([^}]*)\}", expression):
            assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels)) <= told[metric], expression
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
            of = set().union(*(told[m] for m in metrics_in(expression)))
            assert set(labels.replace(",", " ").split()) <= of, expression


def test_the_chart_brings_it():
    assert not of_kind(render(), "ConfigMap")
    made, = of_kind(render("grafanaDashboard.enabled=true"), "ConfigMap")
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1" and made["metadata"]["namespace"] == "faasrl-mpa"
    assert {name: json.loads(text) for name, text in made["data"].items()} == dashboards()
    moved, = of_kind(render("grafanaDashboard.enabled=true", "grafanaDashboard.namespace=grafana",
                            "grafanaDashboard.annotations.grafana_folder=A"), "ConfigMap")
    assert moved["metadata"]["namespace"] == "grafana" and moved["metadata"]["annotations"] == {"grafana_folder": "A"}
