"""What the chart renders of alerts and dashboards, without a cluster."""
import json
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/faasrl-mpa"
PLAIN = ROOT / "deploy/prometheus-rules.yaml"
DASHBOARDS = sorted((CHART / "files/dashboards").glob("*.json"))
HEADER = """\
# Alerts for a Prometheus without the operator: name this file in rule_files of its configuration.
# The chart makes the same as a PrometheusRule (prometheusRule.enabled); `make rules` renews this file
# from charts/faasrl-mpa/files/alerts.yaml. docs/alerts.md has a section on each.
"""


def helm():
    return subprocess.run([ROOT / "tests/cluster/build", "helm"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def render(*settings, json_settings=()):
    """The objects of the chart with these values; those of json_settings are JSON, as fractions must be."""
    text = subprocess.run([helm(), "template", "faasrl-mpa", CHART, "--kube-version=1.34", "-n", "faasrl-mpa",
                           *(word for s in settings for word in ("--set", s)),
                           *(word for s in json_settings for word in ("--set-json", s))],
                          check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    return [o for o in yaml.safe_load_all(text) if o]


def of_kind(objects, kind):
    return [o for o in objects if o["kind"] == kind]


def rendered_rules(*settings, **more):
    rule, = of_kind(render("prometheusRule.enabled=true", *settings, **more), "PrometheusRule")
    return rule["spec"]


def alerts(rules):
    return {r["alert"]: r for g in rules["groups"] for r in g["rules"]}


def plain_text():
    return HEADER + yaml.safe_dump(rendered_rules(), sort_keys=False, width=110, allow_unicode=True)


def dashboards():
    return {path.name: json.loads(path.read_text()) for path in DASHBOARDS}


if __name__ == "__main__":
    PLAIN.write_text(plain_text())
