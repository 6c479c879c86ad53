"""What is written, and what is not: Off, pause, delete, Initial, targets that are somebody else's."""
import json
import re
import subprocess
import time

import pytest

from harness import (Audit, Controller, ENV, EXAMPLE, Load, ROOT, apply, condition, condition_is, cpu_requests,
                     deploy_function, die_with_parent, events, function_url, get, kubectl, mpa, pods, replicas,
                     wait)

pytestmark = pytest.mark.usefixtures("real_pods")
STATUS = {("patch", "multidimpodautoscalers/status")}
BUSY = "20@120s"


def managers(thing):
    return {m["manager"] for m in thing["metadata"].get("managedFields", [])}


def ready(namespace):
    wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), 40)


def test_off_writes_nothing_but_status(namespace):
    deploy_function(namespace)
    audit = Audit()
    with Controller("off"), Load(function_url(namespace, "/sentiment?n=5000"), BUSY):
        apply(EXAMPLE.replace("updateMode: Auto", "updateMode: \"Off\""), namespace)
        ready(namespace)
        wait("it recommends more", lambda: mpa(namespace)["status"].get("recommendation", {}).get(
            "containerRecommendations", [{}])[0].get("target", {}).get("cpu") == "400m", 60)
        promised = wait("it says what Auto would do", lambda: mpa(namespace)["status"].get("whatIf"), 20)
        wait("it goes on counting", lambda: float(mpa(namespace)["status"]["whatIf"]["coreHoursAuto"]) >
             float(promised["coreHoursAuto"]), 20)
    assert promised["message"].startswith("Auto would have reserved ")
    assert set(audit.writes()) == STATUS
    assert replicas(namespace) == 1 and cpu_requests(namespace) == [200]
    assert events(namespace) == []
    for thing in [get("deployment", "primes", namespace), *pods(namespace)]:
        assert "faasrl-mpa" not in managers(thing)


def test_pause_holds_and_deleting_ends_all_writes(namespace):
    deploy_function(namespace)
    with Controller("pause"), Load(function_url(namespace, "/sentiment?n=5000"), BUSY):
        paused = EXAMPLE.replace("metadata:\n", "metadata:\n  annotations: {autoscaling.faasrl.io/paused: 'true'}\n", 1)
        audit = Audit()
        apply(paused, namespace)
        wait("it says that it is paused", lambda: condition_is(namespace, "Paused", "True"), 40)
        time.sleep(8)
        assert set(audit.writes(namespace)) == STATUS
        assert cpu_requests(namespace) == [200]

        kubectl("annotate", "mpa", "primes", "-n", namespace, "autoscaling.faasrl.io/paused-")
        wait("it goes on", lambda: max(cpu_requests(namespace)) > 200, 60)

        kubectl("delete", "mpa", "primes", "-n", namespace)
        time.sleep(2)
        audit = Audit()
        sizes = (replicas(namespace), sorted(cpu_requests(namespace)))
        time.sleep(10)
        assert audit.writes(namespace) == []
        assert (replicas(namespace), sorted(cpu_requests(namespace))) == sizes


def test_initial_sizes_new_pods_only(namespace):
    deploy_function(namespace)
    old = pods(namespace)[0]["metadata"]["name"]
    time.sleep(32)  # a pod counts as new for 30 s after it became ready
    with Controller("initial"), Load(function_url(namespace, "/sentiment?n=5000"), "20@180s"):
        apply(EXAMPLE.replace("updateMode: Auto", "updateMode: Initial"), namespace)
        wait("replicas grow", lambda: replicas(namespace) > 1, 60)

        def sizes():
            return {p["metadata"]["name"]: p["spec"]["containers"][0]["resources"]["requests"]["cpu"]
                    for p in pods(namespace)}
        wait("a new pod has the recommended size",
             lambda: any(cpu == "400m" for name, cpu in sizes().items() if name != old), 60)
        assert sizes()[old] == "200m"


HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: theirs}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: primes}
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"""


def crd(group, version, kind, plural):
    return json.dumps({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {
            "api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": group, "scope": "Namespaced",
                 "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                 "versions": [{"name": version, "served": True, "storage": True, "schema": {
                     "openAPIV3Schema": {"type": "object",
                                         "x-kubernetes-preserve-unknown-fields": True}}}]}})


OTHERS = {
    "HorizontalPodAutoscaler": HPA,
    "ScaledObject": """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: theirs}
spec: {scaleTargetRef: {name: primes}}
""",
    "VerticalPodAutoscaler": """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: theirs}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: primes}}
""",
}


@pytest.fixture(scope="module")
def others_crds():
    """The kinds of KEDA and VPA, before a controller starts: a kind that comes later is seen within
    a minute."""
    for args in (("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
                 ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers")):
        kubectl("apply", "-f", "-", stdin=crd(*args))
    kubectl("wait", "--for=condition=Established", "crd/scaledobjects.keda.sh",
            "crd/verticalpodautoscalers.autoscaling.k8s.io", "--timeout=30s")
    yield
    kubectl("delete", "crd", "scaledobjects.keda.sh", "verticalpodautoscalers.autoscaling.k8s.io")


def test_a_target_of_another_autoscaler_is_left_alone(namespace, others_crds):
    deploy_function(namespace)
    second = EXAMPLE.replace("metadata:\n  name: primes", "metadata:\n  name: second")
    with Controller("owned"):
        for kind, manifest in OTHERS.items():
            apply(manifest, namespace)
            audit = Audit()
            apply(EXAMPLE, namespace)
            said = wait(f"the condition names the {kind}", lambda: condition_is(
                namespace, "AbleToScale", "False", "OwnedByAnother"), 40)
            assert f"{kind} theirs" in said["message"]
            time.sleep(4)
            assert set(audit.writes(namespace)) <= STATUS | {("create", "events"), ("patch", "events")}
            kubectl("delete", "mpa,hpa,scaledobjects,verticalpodautoscalers", "--all", "-n", namespace)
        assert any(reason == "OwnedByAnother" for reason, _ in events(namespace))

        apply(EXAMPLE, namespace)
        ready(namespace)
        time.sleep(1.1)  # so that the second one is younger: times have whole seconds
        apply(second, namespace)
        said = wait("the second MPA yields to the first", lambda: condition_is(
            namespace, "AbleToScale", "False", "OwnedByAnother", name="second"), 40)
        assert "MultidimPodAutoscaler primes" in said["message"]
        kubectl("delete", "mpa", "primes", "-n", namespace)
        wait("the second takes over", lambda: condition(
            namespace, "AbleToScale", name="second").get("status") == "True", 40)


def recommender_of_docs():
    """The program that docs/own-recommender.md shows."""
    text = (ROOT / "docs/own-recommender.md").read_text()
    return re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1]


def test_the_recommender_of_the_docs_works(namespace, tmp_path):
    deploy_function(namespace)
    program = tmp_path / "recommender.py"
    program.write_text(recommender_of_docs())
    with Controller("own"):
        apply(recommended_by("five-per-second"), namespace)
        wait("it is awaited", lambda: condition_is(
            namespace, "RecommendationProvided", "False", "AwaitingRecommender"), 40)
        wait("it can see something", lambda: mpa(namespace)["status"].get("lastDecision", {}).get(
            "observation", {}).get("pods") == 1, 40)
        theirs = subprocess.Popen(["/usr/bin/python3", program], env=ENV, preexec_fn=die_with_parent)
        try:
            with Load(function_url(namespace, "/primes?n=1000"), "12@90s"):
                wait("12 requests per second have 3 replicas", lambda: replicas(namespace) == 3, 60)
                wait("of their size", lambda: set(cpu_requests(namespace)) == {300}, 40)
            assert theirs.poll() is None, "it has ended"
        finally:
            theirs.kill()
            theirs.wait()
    assert mpa(namespace)["status"]["lastDecision"]["recommender"] == "five-per-second"


def recommended_by(name):
    return EXAMPLE.replace("- name: threshold", f"- name: {name}")


def test_another_recommender_is_carried_out_within_the_bounds(namespace):
    deploy_function(namespace)
    with Controller("external", "--policy=off"):
        apply(recommended_by("ppo"), namespace)
        wait("thresholds stand in for ppo",
             lambda: condition_is(namespace, "FallbackActive", "True", "NoPolicy"), 40)

        apply(recommended_by("theirs"), namespace)
        kubectl("patch", "mpa", "primes", "-n", namespace, "--subresource=status", "--type=merge",
                "-p", json.dumps({"status": {"desiredReplicas": 9, "recommendation": {
                    "containerRecommendations": [
                        {"containerName": "function", "target": {"cpu": "300m"}}]}}}))
        wait("their size is given", lambda: set(cpu_requests(namespace)) == {300}, 40)
        wait("their replicas are, as far as allowed", lambda: replicas(namespace) == 4, 40)
        status = mpa(namespace)["status"]
        assert status["desiredReplicas"] == 9, "what they wrote is theirs"
        assert status["lastDecision"]["recommender"] == "theirs"
        assert condition_is(namespace, "ScalingLimited", "True", "TooManyReplicas")
