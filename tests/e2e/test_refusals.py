"""What the cluster does not let the controller do: each time a condition gives the reason, an event tells it, and the
pods stay as they are. A node that can never give a size is in test_trouble.py, what can be no target in test_targets.py."""
import contextlib
import json
import re

import pytest
import yaml

import webhook
from harness import (Controller, EXAMPLE, FUNCTION, ROOT, apply, condition_is, cpu_requests, deploy_function, events,
                     kubectl, listing, mpa, replicas, restarts, wait)
from test_targets import autoscaler, recommend

pytestmark = pytest.mark.usefixtures("real_pods")
QUICK = ["--interval=500ms", "--status-interval=500ms", "--resize-cooldown=0s", "--leader-elect=false"]
TARGET = ("apps/v1", "Deployment", "primes")


def following(namespace, name, **options):
    return Controller(f"refusal-{name}", *QUICK, f"--namespace={namespace}", **options)


def said(namespace, kind, status, reason, words, event):
    """The condition with this reason and these words, and the event."""
    found = wait(f"{kind} says {reason}", lambda: condition_is(namespace, kind, status, reason), 30)
    assert re.search(words, found["message"]), found["message"]
    wait(f"an event says {event}", lambda: any(
        r == event and re.search(words, message) for r, message in events(namespace)), 15)
    return found


def deploy_with(namespace, resources):
    """The function, with other resources."""
    objects = list(yaml.safe_load_all(FUNCTION))
    made = next(o for o in objects if o["kind"] == "Deployment")
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    apply(yaml.safe_dump_all(objects), namespace)
    kubectl("rollout", "status", "deployment/primes", "-n", namespace, "--timeout=60s")


# --- pods that cannot have another size ---------------------------------------------------------
@pytest.mark.parametrize("resources", [{}, {"requests": {"memory": "64Mi"}}], ids=["BestEffort", "memory only"])
def test_no_cpu_request(namespace, resources):
    deploy_with(namespace, resources)
    with following(namespace, "no-request"):
        apply(EXAMPLE, namespace)
        said(namespace, "ResizePending", "True", "NoCpuRequest", "function has no CPU request.*pod template", "NoCpuRequest")
    assert [p["spec"]["containers"][0]["resources"] for p in listing("pods", namespace)] == [resources]


def test_guaranteed_pods_whose_limits_are_to_be_left(namespace):
    deploy_function(namespace)
    made = yaml.safe_load(autoscaler(*TARGET))
    made["spec"]["constraints"]["container"][0]["controlledValues"] = "RequestsOnly"
    with following(namespace, "guaranteed"):
        apply(yaml.safe_dump(made), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 1, "300m")
        said(namespace, "ResizePending", "True", "QosClassForbids", "Guaranteed.*RequestsAndLimits", "QosClassForbids")
        assert cpu_requests(namespace) == [200]
        # What it says helps.
        made["spec"]["constraints"]["container"][0]["controlledValues"] = "RequestsAndLimits"
        apply(yaml.safe_dump(made), namespace)
        wait("it is resized", lambda: cpu_requests(namespace) == [300], 30)
        wait("and says so", lambda: condition_is(namespace, "ResizePending", "False"), 10)


# --- nodes ----------------------------------------------------------------------------------------
def milli(text):
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def free_cpu():
    """The node of the pods, and how much CPU nobody on it has asked for."""
    node = next(n for n in json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"]
                if "kwok.x-k8s.io/node" not in n["metadata"].get("annotations", {}))
    found = json.loads(kubectl("get", "pods", "-A", "-o", "json", f"--field-selector=spec.nodeName="
                              f"{node['metadata']['name']},status.phase!=Failed,status.phase!=Succeeded").stdout)["items"]
    taken = sum(milli(c["resources"].get("requests", {}).get("cpu", "0")) for p in found for c in p["spec"]["containers"]
                if "deletionTimestamp" not in p["metadata"])
    return milli(node["status"]["allocatable"]["cpu"]) - taken


def filler(cpu):
    pod = next(o for o in yaml.safe_load_all(FUNCTION) if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": f"{cpu}m"}}
    pod["terminationGracePeriodSeconds"] = 0
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "filler"}, "spec": pod})


def test_a_node_that_is_full_at_present(namespace):
    deploy_function(namespace)
    apply(filler(free_cpu() - 100), namespace)
    kubectl("wait", "--for=condition=Ready", "pod/filler", "-n", namespace, "--timeout=30s")
    with following(namespace, "deferred"):
        apply(autoscaler(*TARGET), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 1, "400m")
        said(namespace, "ResizePending", "True", "Deferred", "resize deferred: .*cpu", "ResizeDeferred")
        assert cpu_requests(namespace) == [200] and restarts(namespace) == 0


# --- admission --------------------------------------------------------------------------------------
WHY = "not before the audit is over"
ADMISSION = "admissionregistration.k8s.io/v1"
RULES = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["pods/resize"]},
         {"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}]


def of_namespace(namespace):
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


@contextlib.contextmanager
def admission_policy(namespace, _):
    policy = {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"{namespace}-deny"},
              "spec": {"matchConstraints": {"resourceRules": RULES, "namespaceSelector": of_namespace(namespace)},
                       "validations": [{"expression": "false", "message": WHY}]}}
    binding = {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": policy["metadata"],
               "spec": {"policyName": f"{namespace}-deny", "validationActions": ["Deny"]}}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([policy, binding]))
    yield lambda: kubectl("delete", "validatingadmissionpolicybinding", f"{namespace}-deny")
    kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", f"{namespace}-deny",
            "--ignore-not-found")


@contextlib.contextmanager
def admission_webhook(namespace, directory):
    with webhook.denying(directory, WHY) as (server, client):
        configuration = {
            "apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": f"{namespace}-deny"},
            "webhooks": [{"name": "deny.e2e.example.com", "clientConfig": client, "rules": RULES, "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "namespaceSelector": of_namespace(namespace)}]}
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump(configuration))
        yield lambda: kubectl("delete", "validatingwebhookconfiguration", f"{namespace}-deny")
        kubectl("delete", "validatingwebhookconfiguration", f"{namespace}-deny", "--ignore-not-found")
        assert {"pods/resize", "deployments/scale"} <= set(server.asked)


@pytest.fixture(params=[admission_policy, admission_webhook], ids=["policy", "webhook"])
def denied(request, namespace, tmp_path):
    """Nobody may resize pods of the namespace, or scale its Deployments; until what is given is called."""
    with request.param(namespace, tmp_path) as allow:
        yield allow


def scaling_is_denied(namespace):
    return kubectl("scale", "deployment/primes", "--replicas=2", "--dry-run=server", "-n", namespace, check=False).returncode


def test_admission_that_denies(namespace, denied):
    deploy_function(namespace)
    wait("the denial counts", lambda: scaling_is_denied(namespace), 20)
    with following(namespace, "denied"):
        apply(autoscaler(*TARGET), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 2, "300m")
        said(namespace, "ResizePending", "True", "Refused", WHY, "ResizeRefused")
        said(namespace, "AbleToScale", "False", "FailedUpdateScale", WHY, "FailedRescale")
        wait("it is not ready", lambda: condition_is(namespace, "Ready", "False", "FailedUpdateScale"), 10)
        assert replicas(namespace) == 1 and cpu_requests(namespace) == [200]
        denied()
        wait("it scales", lambda: replicas(namespace) == 2, 20)
        wait("and says so", lambda: condition_is(namespace, "AbleToScale", "True"), 10)


LIMIT = {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"cpu": "250m"}}]}}
QUOTA = {"kind": "ResourceQuota", "spec": {"hard": {"requests.cpu": "250m"}}}


@pytest.mark.parametrize("bound, words", [(LIMIT, "maximum cpu usage per Container is 250m"),
                                          (QUOTA, "exceeded quota: small")], ids=["LimitRange", "ResourceQuota"])
def test_a_bound_of_the_namespace(namespace, bound, words):
    apply(yaml.safe_dump({"apiVersion": "v1", "metadata": {"name": "small"}, **bound}), namespace)
    deploy_function(namespace)
    with following(namespace, "bound"):
        apply(autoscaler(*TARGET), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 1, "300m")
        said(namespace, "ResizePending", "True", "Refused", words, "ResizeRefused")
        assert cpu_requests(namespace) == [200]
        recommend(namespace, 1, "240m")
        wait("what is allowed is done", lambda: cpu_requests(namespace) == [240], 20)


# --- rights -----------------------------------------------------------------------------------------
@pytest.fixture
def lesser_account():
    """An account with the controller's role, but for the rights to resize and to scale."""
    name = "e2e-lesser"
    role = next(o for o in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
                if o["kind"] == "ClusterRole")
    role["metadata"] = {"name": name}
    for rule in role["rules"]:
        rule["resources"] = [r for r in rule["resources"] if not r.endswith(("/resize", "/scale"))]
    role["rules"] = [rule for rule in role["rules"] if rule["resources"]]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "faasrl-mpa"}}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
               "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "faasrl-mpa"}]}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([role, account, binding]))
    yield name, "faasrl-mpa"
    kubectl("delete", "clusterrole,clusterrolebinding", name)
    kubectl("delete", "serviceaccount", name, "-n", "faasrl-mpa")


def test_missing_rights(namespace, lesser_account):
    deploy_function(namespace)
    with following(namespace, "rights", account=lesser_account):
        apply(autoscaler(*TARGET), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 2, "300m")
        said(namespace, "ResizePending", "True", "Refused", 'cannot patch resource "pods/resize"', "ResizeRefused")
        said(namespace, "AbleToScale", "False", "FailedUpdateScale", 'cannot patch resource "deployments/scale"',
             "FailedRescale")
        assert replicas(namespace) == 1 and cpu_requests(namespace) == [200]
        assert mpa(namespace)["status"]["desiredReplicas"] == 2
