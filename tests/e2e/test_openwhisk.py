"""MPAs on actions of OpenWhisk: their bare pods are found and told apart from prewarmed and foreign ones, CPU is set
in place, names that do not tell are reported, and replicas and memory stay OpenWhisk's. OpenWhisk itself is not here:
its pods and metrics are made as its sources make them (openwhisk.py)."""
import copy
import json
import time

import pytest
import yaml

from harness import (Audit, Controller, ROOT, apply, condition_is, events, get, kubectl, listing, mpa, run, wait)
from openwhisk import Calls, Invoker, Waiting, pod_name, start_user_events

pytestmark = pytest.mark.usefixtures("real_pods")

EXAMPLES = ROOT / "deploy" / "examples"
AUTOSCALER = yaml.safe_load((EXAMPLES / "openwhisk.yaml").read_text())
# What the controller may write here: never an eviction, a deletion, a /scale, or the pod itself.
HARMLESS = {("patch", "pods/resize"), ("patch", "multidimpodautoscalers/status"),
            ("create", "events"), ("patch", "events")}


@pytest.fixture
def whisk(namespace):
    """Two invokers and user-events."""
    address = start_user_events(namespace)
    return Invoker(namespace, 0, address), Invoker(namespace, 1, address)


def autoscaler(action, name="hello", constraints=None, recommender=None):
    manifest = copy.deepcopy(AUTOSCALER)
    manifest["metadata"]["name"] = name
    manifest["spec"]["scaleTargetRef"]["name"] = action
    manifest["spec"]["constraints"].update(constraints or {})
    if recommender:
        manifest["spec"]["recommenders"] = [{"name": recommender}]
    return json.dumps(manifest)


def recommend(namespace, cpu, name="hello", **more):
    status = {"recommendation": {"containerRecommendations": [
        {"containerName": "user-action", "target": {"cpu": cpu, **more}}]}}
    kubectl("patch", "mpa", name, "-n", namespace, "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": status}))


def containers(namespace):
    """By pod: what the kubelet has in force, whether it restarted, and which container it is."""
    found = {}
    for p in listing("pods", namespace, "-l", "user-action-pod"):
        for s in p["status"].get("containerStatuses", []):
            found[p["metadata"]["name"]] = {**s.get("resources", {}), "restarts": s["restartCount"],
                                            "id": s.get("containerID"), "qos": p["status"]["qosClass"]}
    return found


def cpu(namespace, name):
    """Request and limit."""
    c = containers(namespace).get(name, {})
    return c.get("requests", {}).get("cpu"), c.get("limits", {}).get("cpu")


def foreign_pod(namespace, name):
    """Somebody's pod that only has such a name."""
    apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "foreign"}},
                      "spec": {"containers": [{"name": "user-action", "image": "local/function:1", "resources": {
                          "requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}}]}}), namespace)


def check_harmless(audit, namespace, resized):
    entries = audit.entries(namespace)
    assert {(e["verb"], "/".join(filter(None, (e["objectRef"]["resource"], e["objectRef"].get("subresource")))))
            for e in entries} <= HARMLESS
    assert {e["objectRef"]["name"] for e in entries if e["objectRef"]["resource"] == "pods"} <= set(resized)


def test_an_action_gets_the_cpu_it_needs(namespace, whisk):
    first, second = whisk
    busy = [first.start("guest/hello"), second.start("guest/hello")]
    other, spare = first.start("guest/other"), first.prewarm()
    foreign_pod(namespace, pod_name("owdev-invoker-0", 0, 99, "guest", "hello"))
    before, audit = containers(namespace), Audit()
    with Controller("whisk"), Calls(first, "guest/hello", busy):
        apply(autoscaler("guest/hello"), namespace)
        wait("its pods are found", lambda: mpa(namespace, "hello").get("status", {}).get("currentReplicas") == 2, 30)
        for name in busy:
            wait("CPU is set in place", lambda: cpu(namespace, name) == ("400m", "400m"), 120)
        status = mpa(namespace, "hello")["status"]
        seen = status["lastDecision"]["observation"]  # as user-events has it
        assert seen["requestsPerSecond"] > 0 and seen["latencyMs"] > 0
        assert condition_is(namespace, "Ready", "True", name="hello")
        # Those that come, cold or from a prewarmed pod, get the size of the others; one that goes is missed. All four
        # at once would be more than a node of two cores has beside Knative.
        cold = second.start("guest/hello")
        wait("a new pod is resized", lambda: cpu(namespace, cold) == ("400m", "400m"), 30)
        kubectl("delete", "pod", cold, "-n", namespace, "--grace-period=1")
        wait("two are left", lambda: mpa(namespace, "hello")["status"]["currentReplicas"] == 2, 30)
        assert cpu(namespace, spare) == ("100m", "100m")
        first.initialise(spare, "guest/hello")
        wait("a prewarmed pod that was taken is resized", lambda: cpu(namespace, spare) == ("400m", "400m"), 30)
        wait("it counts", lambda: mpa(namespace, "hello")["status"]["currentReplicas"] == 3, 30)
    after = containers(namespace)
    for name in (*busy, other, spare):
        assert after[name]["qos"] == "Guaranteed" and after[name]["restarts"] == 0
        assert after[name]["id"] == before[name]["id"]
        for amounts in ("requests", "limits"):
            assert after[name][amounts]["memory"] == before[name][amounts]["memory"]
    assert after[other] == before[other]
    assert get("pod", pod_name("owdev-invoker-0", 0, 99, "guest", "hello"), namespace)["spec"]["containers"][0][
        "resources"]["requests"]["cpu"] == "100m"
    check_harmless(audit, namespace, [*busy, spare, cold])


def test_without_requests_it_rests_and_new_pods_start_right(namespace, whisk):
    first, _ = whisk
    pod = first.start("guest/tools/hello")
    with Controller("whisk-zero"):
        apply(autoscaler("guest/tools/hello", recommender="the-test"), namespace)
        wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True", name="hello"), 30)
        recommend(namespace, "300m")
        wait("it is resized", lambda: cpu(namespace, pod) == ("300m", "300m"), 30)
        kubectl("delete", "pod", pod, "-n", namespace, "--grace-period=1")
        wait("there is none", lambda: condition_is(namespace, "ScalingActive", "True", "ScaledToZero", "hello"), 30)
        assert condition_is(namespace, "Ready", "True", name="hello")
        began, pod = time.monotonic(), first.start("guest/tools/hello")
        wait("a new one gets the size at once", lambda: cpu(namespace, pod) == ("300m", "300m"), 30)
        assert time.monotonic() - began < 15


def test_names_that_do_not_tell_are_reported(namespace, whisk):
    first, _ = whisk
    long = "resize_the_images_of_the_catalogue_and_put_them_back"
    cut = first.start(f"guest/tools/{long}")
    twins = [first.start("guest/my-func"), first.start("guest/tools/myfunc")]
    assert cut.endswith("-catalogue") and len(cut) == 62  # cut at a dash, which was dropped
    before, audit = containers(namespace), Audit()
    for action in ("guest/my-func", "guest/tools/myfunc"):
        first.tell(action, 0.01)
    with Controller("whisk-names"):
        for name, action in (("cut", f"guest/tools/{long}"), ("unlabelled", "guest/tools/myfunc")):
            apply(autoscaler(action, name, recommender="the-test"), namespace)
            recommend(namespace, "300m", name)
            said = wait("it is told", lambda: condition_is(namespace, "AbleToScale", "False", "AmbiguousTarget",
                                                           name), 30)
            assert f"may be of {action} or" in said["message"]
            assert condition_is(namespace, "Ready", "False", "AmbiguousTarget", name)
        wait("an event says so", lambda: any(r == "AmbiguousTarget" for r, _ in events(namespace)), 10)
        time.sleep(6)
        assert containers(namespace) == before
        check_harmless(audit, namespace, [])
        # Its twin has labels, which tell.
        apply(autoscaler("guest/my-func", "labelled", recommender="the-test"), namespace)
        wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True", name="labelled"), 30)
        recommend(namespace, "300m", "labelled")
        wait("it is resized", lambda: cpu(namespace, twins[0]) == ("300m", "300m"), 30)
        assert cpu(namespace, twins[1]) == ("100m", "100m")
    check_harmless(audit, namespace, twins[:1])


def test_two_autoscalers_that_would_have_the_same_pods(namespace, whisk):
    """With OpenWhisk's scheduler no pod has labels; only the MPAs know of both actions."""
    first = Invoker(namespace, 0, whisk[0].events, scheduler=True)
    pod = first.start("guest/my-func")
    with Controller("whisk-two"):
        apply(autoscaler("guest/my-func", "one", recommender="the-test"), namespace)
        wait("alone it is found", lambda: condition_is(namespace, "AbleToScale", "True", name="one"), 30)
        apply(autoscaler("guest/My.Func", "two", recommender="the-test"), namespace)
        for name in ("one", "two"):
            wait("it is told", lambda: condition_is(namespace, "AbleToScale", "False", "AmbiguousTarget", name), 30)
            recommend(namespace, "300m", name)
        time.sleep(6)
        assert cpu(namespace, pod) == ("100m", "100m")
        kubectl("delete", "mpa", "two", "-n", namespace)
        wait("alone it is resized", lambda: cpu(namespace, pod) == ("300m", "300m"), 30)


def test_pods_without_cpu_say_how_to_get_it(namespace, whisk):
    first, _ = whisk
    pod = first.start("guest/hello", cpu_scaling=None)
    before, audit = containers(namespace), Audit()
    assert before[pod]["qos"] == "Burstable"
    with Controller("whisk-no-cpu"):
        apply(autoscaler("guest/hello"), namespace)
        said = wait("it says so", lambda: condition_is(namespace, "ConfigUnsupported", "True", "NoCpuRequest",
                                                       "hello"), 30)
        assert "whisk.kubernetes.cpu-scaling" in said["message"]
        assert condition_is(namespace, "Ready", "False", "NoCpuRequest", "hello")
        wait("an event says so", lambda: any(r == "NoCpuRequest" for r, _ in events(namespace)), 10)
        time.sleep(4)
    assert containers(namespace) == before
    check_harmless(audit, namespace, [])


@pytest.mark.parametrize("constraints, reason", [
    ({"global": {"minReplicas": 2, "maxReplicas": 5}}, "ReplicasUnsupported"),
    ({"containerControlledResources": ["cpu", "memory"]}, "MemoryUnsupported")])
def test_what_is_openwhisks_own_is_left_and_cpu_is_set(namespace, whisk, constraints, reason):
    first, _ = whisk
    pod = first.start("guest/hello")
    memory = containers(namespace)[pod]["limits"]["memory"]
    audit = Audit()
    with Controller("whisk-own"):
        apply(autoscaler("guest/hello", constraints=constraints, recommender="the-test"), namespace)
        said = wait("it is told", lambda: condition_is(namespace, "ConfigUnsupported", "True", reason, "hello"), 30)
        assert "only CPU is" in said["message"]
        recommend(namespace, "300m", memory="256Mi")
        kubectl("patch", "mpa", "hello", "-n", namespace, "--subresource=status", "--type=merge", "-p",
                '{"status": {"desiredReplicas": 4}}')
        wait("CPU is set all the same", lambda: cpu(namespace, pod) == ("300m", "300m"), 30)
        time.sleep(4)
    assert containers(namespace)[pod]["limits"]["memory"] == memory
    check_harmless(audit, namespace, [pod])


def make_invokers(namespace, replicas):
    """As the chart makes them, but with a CPU request, as the patch that drains them gives."""
    apply(json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "owdev-invoker"}, "spec": {
        "serviceName": "owdev-invoker", "replicas": replicas, "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"name": "owdev-invoker"}}, "template": {
            "metadata": {"labels": {"name": "owdev-invoker"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                "name": "invoker", "image": "local/function:1", "resources": {"requests": {"cpu": "50m"}}}]}}}}),
          namespace)


def test_examples_of_invokers_are_accepted(namespace):
    run(ROOT / "build/mpactl", "validate", "-f", EXAMPLES / "openwhisk.yaml")
    run(ROOT / "build/mpactl", "validate", "-f", EXAMPLES / "openwhisk-invokers.yaml")
    kubectl("apply", "-n", namespace, "--dry-run=server", "-f", EXAMPLES / "openwhisk.yaml", "-f",
            EXAMPLES / "openwhisk-invokers.yaml")
    make_invokers(namespace, 0)
    kubectl("patch", "statefulset", "owdev-invoker", "-n", namespace, "--patch-file", EXAMPLES / "openwhisk-drain.yaml")
    spec = get("statefulset", "owdev-invoker", namespace)["spec"]["template"]["spec"]
    assert "preStop" in spec["containers"][0]["lifecycle"] and spec["terminationGracePeriodSeconds"] == 120
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "250m"}}


def test_invokers_are_as_many_as_waits_need(namespace, whisk):
    """By /scale alone; the hook that drains one that goes is tried in tests/docs/test_drain.py."""
    make_invokers(namespace, 1)
    manifest = yaml.safe_load((EXAMPLES / "openwhisk-invokers.yaml").read_text())
    manifest["spec"]["constraints"]["global"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}

    def count():
        return get("statefulset", "owdev-invoker", namespace)["spec"]["replicas"]
    audit = Audit()
    with Controller("whisk-invokers"), Waiting(whisk[0], "guest/hello", 2) as waiting:
        apply(json.dumps(manifest), namespace)
        wait("more invokers come", lambda: count() >= 2, 90)
        waiting.wait_s = 0.01
        wait("they go again", lambda: count() == 1, 120)
    assert set(audit.writes(namespace)) <= {("patch", "statefulsets/scale"), *(HARMLESS - {("patch", "pods/resize")})}
