"""No spare permission: the controller does all its work with the chart's role, and the API server refuses it
something as soon as any one verb is missing."""
import json
import re
import time

import pytest
import yaml

from harness import Controller, ROOT, FUNCTION, apply, kubectl, listing, token, wait
from test_chart import REFUSAL, make_namespace, of_kind, render
from test_metrics import LISTEN, page
from test_modes import others_crds  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("real_pods")
SYSTEM, ACCOUNT = "rights-system", "rights-faasrl-mpa"
KINDS = {"d": "Deployment", "s": "StatefulSet", "r": "ReplicaSet"}
SIZES = [(1, "100m"), (2, "150m")]
ROLE_KINDS = ("ClusterRole", "Role")


def permissions():
    """Each group, resource and verb of deploy/rbac.yaml, which test_chart.py compares with the chart."""
    for role in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()):
        if role["kind"] in ROLE_KINDS:
            for rule in role["rules"]:
                yield from ((g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"])


PERMISSIONS = list(permissions())
# What is learned takes load and time to come about: test_learning.py looks at these.
NEEDED = [p for p in PERMISSIONS if p[1] != "configmaps"]


def without(role, missing):
    """The role less one permission; the rules are taken apart so that nothing else goes."""
    rules = [{**rule, "apiGroups": [g], "resources": [r], "verbs": [v]} for rule in role["rules"]
             for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"] if (g, r, v) != missing]
    return {**role, "rules": rules}


@pytest.fixture(scope="module")
def roles():
    make_namespace(SYSTEM)
    objects = [o for o in render(namespace=SYSTEM, release="rights")
               if o["kind"] in (*ROLE_KINDS, "ClusterRoleBinding", "RoleBinding", "ServiceAccount")]
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    yield [o for kind in ROLE_KINDS for o in of_kind(objects, kind)]
    kubectl("delete", "clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/instance=rights")
    kubectl("delete", "namespace", SYSTEM, "--wait=false")


def workload(name, kind):
    made = next(d for d in yaml.safe_load_all(FUNCTION) if d["kind"] == "Deployment")
    labels = {"app": name}
    made["kind"], made["metadata"] = kind, {"name": name}
    made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"},
                              "limits": {"cpu": "100m", "memory": "64Mi"}}
    return made


def autoscaler(name, kind):
    """Someone else recommends (the test does), so that nothing waits for load."""
    return {"apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler", "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
                     "goals": {"latency": {"target": "1s"}},
                     "constraints": {"global": {"minReplicas": 1, "maxReplicas": 2, "behavior": {
                         "scaleDown": {"stabilizationWindowSeconds": 0}}},
                         "container": [{"name": "function", "requests": {"minAllowed": {"cpu": "100m"},
                                                                         "maxAllowed": {"cpu": "200m"}}}]},
                     "recommenders": [{"name": "the-test"}]}}


class Scene:
    """One workload of each kind, and a recommendation for all three that can be turned over."""

    def __init__(self, namespace):
        self.namespace, self.turn = namespace, 0
        objects = [make(name, kind) for name, kind in KINDS.items() for make in (workload, autoscaler)]
        apply(yaml.safe_dump_all(objects), namespace)
        wait("pods run", lambda: len(self.sizes()) == 3, 60)

    def turn_over(self):
        page("/api/v1/mpas", bearer=token())  # someone looks at the dashboard
        self.turn = 1 - self.turn
        count, cpu = SIZES[self.turn]
        status = {"desiredReplicas": count, "recommendation": {"containerRecommendations": [
            {"containerName": "function", "target": {"cpu": cpu}}]}}
        wishes = [{"apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler",
                   "metadata": {"name": name}, "status": status} for name in KINDS]
        kubectl("apply", "--server-side", "--force-conflicts", "--subresource=status", "--field-manager=the-test",
                "-n", self.namespace, "-f", "-", stdin=yaml.safe_dump_all(wishes))

    def sizes(self):
        return sorted((p["metadata"]["labels"]["app"], p["spec"]["containers"][0]["resources"]["requests"]["cpu"])
                      for p in listing("pods", self.namespace)
                      if "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] == "Running")

    def is_followed(self):
        count, cpu = SIZES[self.turn]
        return self.sizes() == sorted([(name, cpu) for name in KINDS] * count)

    def counted_events(self):
        return [e for e in listing("events", self.namespace) if e.get("count", 1) > 1 and
                e["involvedObject"]["kind"] == "MultidimPodAutoscaler"]


@pytest.fixture(scope="module")
def scene(real_pods, others_crds):  # noqa: F811
    make_namespace("rights")
    yield Scene("rights")
    kubectl("delete", "namespace", "rights", "--wait=false")


def controller():
    kubectl("delete", "lease", "--all", "-n", SYSTEM)
    made = Controller("rights", "--interval=1s", "--resize-cooldown=0s", "--lease-name=" + ACCOUNT, LISTEN,
                      account=(ACCOUNT, SYSTEM))
    made.log_file.unlink(missing_ok=True)
    return made.launch()


def test_the_role_is_enough(roles, scene):
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(roles))
    process = controller()
    try:
        for _ in range(3):
            scene.turn_over()
            wait("all three have what was recommended", scene.is_followed, 40)
        wait("an event said twice is counted", scene.counted_events, 20)
        time.sleep(2.5)  # the lease is renewed
        assert not REFUSAL.search(process.log())
    finally:
        process.stop()


@pytest.mark.parametrize("group,resource,verb", NEEDED, ids=["-".join(filter(None, p)) for p in NEEDED])
def test_no_permission_is_spare(roles, scene, group, resource, verb):
    lesser = [without(role, (group, resource, verb)) for role in roles]
    assert sum(len(r["rules"]) for r in lesser) == len(PERMISSIONS) - 1
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(lesser))
    refusal = re.compile(rf'cannot {verb} resource \\?"{resource}\\?" in API group \\?"{group}\\?"')
    process = controller()

    def refused():
        """What is only sent now and then needs another change."""
        scene.turn_over()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            if refusal.search(process.log()):
                return True
            time.sleep(0.1)
        return process.alive() and False
    try:
        wait(f"the API server refuses to {verb} {resource}", refused, 30, every=0)
        others = set(re.findall(r'cannot (\w+) resource \\?"([\w/]+)\\?"', process.log())) - {(verb, resource)}
        assert not others, "the scene itself lacks a right"
    finally:
        process.stop()
