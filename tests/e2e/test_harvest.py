"""CPU between the MPAs of a group, with real pods: what one function leaves of what its template requests is lent to
another, and comes back when it is needed."""
import pytest
import yaml

from harness import (EXAMPLE, FUNCTION, Controller, Load, apply, condition_is, get, kubectl, listing, wait)

pytestmark = pytest.mark.usefixtures("real_pods")
ASKED = {"rich": 400, "poor": 100}
ALL = sum(ASKED.values())


def function(name):
    deployment, service = yaml.safe_load_all(FUNCTION)
    for what in (deployment["metadata"], deployment["spec"]["template"]["metadata"], service["metadata"]):
        what.setdefault("labels", {})["app"] = name
    deployment["metadata"]["name"] = service["metadata"]["name"] = name
    deployment["spec"]["selector"]["matchLabels"]["app"] = service["spec"]["selector"]["app"] = name
    resources = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"] = resources["limits"]["cpu"] = f"{ASKED[name]}m"
    return yaml.safe_dump_all([deployment, service])


def autoscaler(name):
    made = yaml.safe_load(EXAMPLE)
    made["metadata"]["name"] = made["spec"]["scaleTargetRef"]["name"] = name
    made["spec"]["constraints"]["global"]["maxReplicas"] = 1
    made["spec"]["constraints"]["container"][0]["requests"] = {"minAllowed": {"cpu": "50m"}, "maxAllowed": {"cpu": "600m"}}
    made["spec"]["policy"]["harvestGroup"] = "team"
    return yaml.safe_dump(made)


def cpu(namespace, name):
    """What the kubelet says is in force."""
    for pod in listing("pods", namespace, "-l", f"app={name}"):
        for status in pod["status"].get("containerStatuses", []):
            text = status.get("resources", {}).get("requests", {}).get("cpu", "0")
            return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)
    return 0


def load(namespace, name, trace):
    """30 requests/s need all that rich has asked for, on any machine."""
    return Load(f"http://{get('service', name, namespace)['spec']['clusterIP']}/sentiment", trace, "--call-ms=11")


def test_idle_cpu_is_lent_and_comes_back(namespace):
    for name in ASKED:
        apply(function(name), namespace)
    for name in ASKED:
        kubectl("rollout", "status", f"deployment/{name}", "-n", namespace, "--timeout=90s")
        apply(autoscaler(name), namespace)
    with Controller("harvest"):
        wait("what is idle is taken", lambda: cpu(namespace, "rich") < 200, 60)
        # Rising: a pod of 50m under all of it at once has no CPU left to be asked how it is.
        with load(namespace, "poor", "3-20@45s,20@300s"):
            wait("it is lent", lambda: cpu(namespace, "poor") > ASKED["poor"], 120)
            wait("and never more than was asked for",
                 lambda: cpu(namespace, "poor") + cpu(namespace, "rich") <= ALL and cpu(namespace, "poor") >= 150, 90)
            with load(namespace, "rich", "3-30@30s,30@200s"):
                wait("all of it comes back", lambda: cpu(namespace, "rich") >= ASKED["rich"], 120)
                wait("from who had borrowed it",
                     lambda: cpu(namespace, "poor") + cpu(namespace, "rich") <= ALL, 60)
        assert condition_is(namespace, "Ready", "True", name="rich")
