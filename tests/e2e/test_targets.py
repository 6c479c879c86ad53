"""Targets beyond Deployments: a kind of somebody else's with a /scale, found by discovery; and what can be
no target, or may not be one for want of rights, says why."""
import json
import time

import pytest
import yaml

from harness import Controller, FUNCTION, apply, condition_is, cpu_requests, events, get, kubectl, wait
from test_chart import of_kind, render

pytestmark = pytest.mark.usefixtures("real_pods")

# Replicas stand at a place of its own: only /scale knows it.
POOL = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.e2e.example.com}
spec:
  group: e2e.example.com
  scope: Namespaced
  names: {kind: Pool, listKind: PoolList, plural: pools, singular: pool}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.workers.size, statusReplicasPath: .status.workers}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def autoscaler(api_version, kind, name):
    """Someone else recommends (the test does), so that nothing waits for load."""
    return yaml.safe_dump({
        "apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler", "metadata": {"name": "primes"},
        "spec": {"scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name},
                 "goals": {"latency": {"target": "1s"}},
                 "constraints": {"global": {"minReplicas": 1, "maxReplicas": 4},
                                 "container": [{"name": "function", "requests": {"minAllowed": {"cpu": "100m"},
                                                                                 "maxAllowed": {"cpu": "400m"}}}]},
                 "recommenders": [{"name": "the-test"}]}})


def recommend(namespace, count, cpu):
    status = {"desiredReplicas": count, "recommendation": {"containerRecommendations": [
        {"containerName": "function", "target": {"cpu": cpu}}]}}
    kubectl("patch", "mpa", "primes", "-n", namespace, "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": status}))


@pytest.fixture(scope="module")
def pools():
    kubectl("apply", "-f", "-", stdin=POOL)
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/pools.e2e.example.com")
    yield
    kubectl("delete", "crd", "pools.e2e.example.com")


@pytest.fixture
def rights():
    """What the chart adds for rbac.scaleTargets, for the account of deploy/rbac.yaml."""
    role = of_kind(render("--set", "rbac.scaleTargets[0].group=e2e.example.com,rbac.scaleTargets[0].resource=pools"),
                   "ClusterRole")[0]
    role["metadata"] = {"name": "e2e-pools"}
    role["rules"] = [rule for rule in role["rules"] if rule["apiGroups"] == ["e2e.example.com"]]
    assert len(role["rules"]) == 2
    binding = {"apiVersion": role["apiVersion"], "kind": "ClusterRoleBinding", "metadata": {"name": "e2e-pools"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-pools"},
               "subjects": [{"kind": "ServiceAccount", "name": "faasrl-mpa", "namespace": "faasrl-mpa"}]}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([role, binding]))
    yield
    kubectl("delete", "clusterrole,clusterrolebinding", "e2e-pools")


def make_pool(namespace):
    """A pool, and the Deployment that its controller would have made."""
    apply(yaml.safe_dump({"apiVersion": "e2e.example.com/v1beta1", "kind": "Pool", "metadata": {"name": "p"},
                          "spec": {"workers": {"size": 1}}}), namespace)
    owner = {"apiVersion": "e2e.example.com/v1beta1", "kind": "Pool", "name": "p", "controller": True,
             "uid": get("pool", "p", namespace)["metadata"]["uid"]}
    objects = list(yaml.safe_load_all(FUNCTION))
    next(o for o in objects if o["kind"] == "Deployment")["metadata"]["ownerReferences"] = [owner]
    apply(yaml.safe_dump_all(objects), namespace)
    kubectl("rollout", "status", "deployment/primes", "-n", namespace, "--timeout=60s")


def size(namespace):
    return get("pool", "p", namespace)["spec"]["workers"]["size"]


def test_a_kind_that_comes_later_is_found(namespace, rights):
    """Before the others, as their kind stays until the last of them is done."""
    with Controller("late-kind"):
        apply(autoscaler("e2e.example.com/v1beta1", "Pool", "p"), namespace)
        wait("it is not known", lambda: condition_is(namespace, "ConfigUnsupported", "True"), 30)
        kubectl("apply", "-f", "-", stdin=POOL)
        try:
            kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/pools.e2e.example.com")
            make_pool(namespace)
            began = time.monotonic()
            wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 60)
            assert time.monotonic() - began < 45  # it is asked for again after 30 s
        finally:
            kubectl("delete", "crd", "pools.e2e.example.com")


def test_any_kind_with_a_scale_is_a_target(namespace, pools, rights):
    make_pool(namespace)
    with Controller("pool"):
        apply(autoscaler("e2e.example.com/v1beta1", "Pool", "p"), namespace)
        wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 3, "300m")
        wait("its replicas are set where it has them", lambda: size(namespace) == 3, 30)
        wait("its pod is resized in place", lambda: cpu_requests(namespace) == [300], 30)
        # Somebody sets it back: seen, and set again.
        kubectl("scale", "pool/p", "-n", namespace, "--replicas=1")
        wait("it is set again", lambda: size(namespace) == 3, 30)
        kubectl("delete", "pool", "p", "-n", namespace, "--cascade=orphan")
        wait("it is missed", lambda: condition_is(namespace, "AbleToScale", "False", "FailedGetScale"), 30)


def test_missing_rights_are_told(namespace, pools):
    make_pool(namespace)
    with Controller("pool-rights"):
        apply(autoscaler("e2e.example.com/v1beta1", "Pool", "p"), namespace)
        said = wait("it says that it may not", lambda: condition_is(
            namespace, "AbleToScale", "False", "FailedGetScale"), 30)
        assert "pools cannot be watched" in said["message"] and "forbidden" in said["message"]
        wait("an event says so", lambda: any(r == "FailedGetScale" for r, _ in events(namespace)), 10)


@pytest.mark.parametrize("api_version, kind, says", [
    ("batch/v1", "Job", "batch/v1 Job cannot be scaled: it has no /scale"),
    ("apps/v1", "DaemonSet", "apps/v1 DaemonSet cannot be scaled: it has no /scale"),
    ("apps/v1", "Deploymnet", "apps/v1 has no kind Deploymnet"),
    ("nobody.example.com/v1", "Thing", "nobody.example.com/v1 Thing is not known to this cluster"),
])
def test_what_can_be_no_target_says_why(namespace, api_version, kind, says):
    with Controller("no-target"):
        apply(autoscaler(api_version, kind, "x"), namespace)
        said = wait("it says why", lambda: condition_is(
            namespace, "ConfigUnsupported", "True", "UnsupportedTarget"), 30)
        assert says in said["message"]
        assert condition_is(namespace, "Ready", "False", "UnsupportedTarget")
        wait("an event says so", lambda: any(r == "UnsupportedTarget" for r, _ in events(namespace)), 10)
