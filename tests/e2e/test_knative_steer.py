"""An MPA on a Service of Knative: its autoscaler is steered by bounds, CPU is set in place, zero and the
activator go on working, and everything is as it was once the MPA is gone."""
import copy
import json
import time

import pytest

import knative
from harness import Audit, Controller, condition_is, events, kubectl, new_namespace, wait

MIN, MAX = "autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/max-scale"
STEERED = "autoscaling.faasrl.io/steered"
BUSY_MS = 25  # of CPU for a call: 15 a second need nearly all that one pod may have, 20 more than that
AUTHORS = {**knative.QUICK_TO_ZERO, MAX: "3"}  # stricter than the MPA
AS_IT_WAS = None, "3", None


@pytest.fixture
def function(with_knative):
    """A Service that goes to zero quickly, its MPA, and a controller: namespace and Revision."""
    with new_namespace() as namespace:
        revision = knative.make_service(namespace, AUTHORS)
        with Controller("knative"):
            make_autoscaler(namespace)
            yield namespace, revision
            kubectl("delete", "mpa", "--all", "-n", namespace)


def make_autoscaler(namespace, called="primes", **spec):
    made = copy.deepcopy(knative.AUTOSCALER)
    made["metadata"]["name"] = called
    made["spec"].update(spec)
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(made))


SOMEBODY = [{"name": "the-test"}]  # recommends, so that nothing waits for load


def recommend(namespace, replicas=None, cpu=None):
    status = {"desiredReplicas": replicas} if replicas else {}
    if cpu:
        status["recommendation"] = {"containerRecommendations": [
            {"containerName": "user-container", "target": {"cpu": cpu}}]}
    kubectl("patch", "mpa", "primes", "-n", namespace, "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": status}))


def bounds(namespace, revision):
    annotations = knative.autoscaler_of(namespace, revision)["metadata"].get("annotations", {})
    return annotations.get(MIN), annotations.get(MAX), annotations.get(STEERED)


def containers(namespace, revision):
    return [s for p in knative.pods_of(namespace, revision) for s in p["status"].get("containerStatuses", [])]


def cpu_of(namespace, revision, container):
    """The CPU requests in force; a container that does not run yet has none."""
    return {s["resources"]["requests"]["cpu"] for s in containers(namespace, revision)
            if s["name"] == container and "requests" in s.get("resources", {})}


def restarted(namespace, revision):
    """Containers and why they ended."""
    return [(s["name"], s["lastState"]) for s in containers(namespace, revision) if s["restartCount"] > 0]


def test_load_zero_and_back(function):
    namespace, revision = function
    audit = Audit()
    wait("what nobody has asked is not held", lambda: not knative.pods_of(namespace, revision), 60)
    assert knative.ask(namespace, revision)[0] == 200
    proxy = cpu_of(namespace, revision, "queue-proxy")
    with knative.load(namespace, revision, "20@150s", knative.call_of(BUSY_MS, namespace, revision)):
        wait("CPU is set in place", lambda: cpu_of(namespace, revision, "user-container") == {"400m"}, 90)
        wait("the floor rises", lambda: int(bounds(namespace, revision)[0] or 0) >= 2, 90)
        wait("pods follow", lambda: len(knative.pods_of(namespace, revision)) >= 2, 30)
        assert bounds(namespace, revision)[1:] == ("3", "true")
        # Somebody else's bound is seen and set right.
        kubectl("annotate", "podautoscaler", revision, "-n", namespace, "--overwrite", f"{MIN}=1")
        wait("the floor is ours again", lambda: int(bounds(namespace, revision)[0] or 0) >= 2, 30)
        knative.check_left_alone(audit, namespace, revision)
    assert cpu_of(namespace, revision, "queue-proxy") == proxy
    assert restarted(namespace, revision) == []
    assert any(reason == "SuccessfulRescale" for reason, _ in events(namespace))

    wait("without requests there is no floor", lambda: bounds(namespace, revision)[0] is None, 60)
    wait("Knative ends the last pod", lambda: not knative.pods_of(namespace, revision), 120)
    wait("the MPA says so", lambda: condition_is(namespace, "ScalingActive", "True", "ScaledToZero"), 20)
    assert condition_is(namespace, "Ready", "True")
    status, _ = knative.ask(namespace, revision)  # wakes it, and is not lost
    assert status == 200


def test_a_new_revision_goes_on_and_deleting_hands_back(function):
    namespace, old = function
    busy = knative.call_of(BUSY_MS, namespace, old)
    with knative.load(namespace, old, "15@25s", busy):
        wait("it is steered", lambda: bounds(namespace, old)[2] == "true", 60)
        wait("CPU is set", lambda: cpu_of(namespace, old, "user-container") == {"400m"}, 60)
    new = knative.make_service(namespace, AUTHORS, labels={"release": "2"})
    assert new != old
    with knative.load(namespace, new, "15@60s", busy):
        wait("the new one is steered", lambda: bounds(namespace, new)[2] == "true", 60)
        wait("its pods get what was decided", lambda: cpu_of(namespace, new, "user-container") == {"400m"}, 60)
        wait("the old one is left", lambda: bounds(namespace, old) == AS_IT_WAS, 30)
        kubectl("delete", "mpa", "primes", "-n", namespace)
        wait("all is handed back", lambda: bounds(namespace, new) == AS_IT_WAS, 20)
        time.sleep(8)
        assert bounds(namespace, new) == AS_IT_WAS and bounds(namespace, old) == AS_IT_WAS


def test_each_revision_of_a_split_gets_its_share(with_knative):
    """Somebody else decides on four replicas, so that nothing waits for load; a few requests say that it is not idle."""
    with new_namespace() as namespace, Controller("knative-split"):
        old = knative.make_service(namespace, knative.QUICK_TO_ZERO)
        new = knative.make_service(namespace, knative.QUICK_TO_ZERO, labels={"release": "2"}, traffic=[
            {"revisionName": old, "percent": 75}, {"latestRevision": True, "percent": 25}])
        wait("the traffic is split", lambda: knative.traffic_of(namespace) == {old: 75, new: 25}, 30)
        with knative.load(namespace, old, "3@120s", "/primes?n=1000"), \
                knative.load(namespace, new, "1@120s", "/primes?n=1000"):
            make_autoscaler(namespace, recommenders=SOMEBODY)
            wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
            recommend(namespace, replicas=4)
            wait("three of four are for three quarters", lambda: bounds(namespace, old) == ("3", "3", "true"), 30)
            wait("the fourth is for the rest", lambda: bounds(namespace, new) == ("1", "1", "true"), 10)
            wait("pods follow", lambda: [len(knative.pods_of(namespace, r)) for r in (old, new)] == [3, 1], 40)
            knative.make_service(namespace, knative.QUICK_TO_ZERO, labels={"release": "2"}, traffic=[
                {"latestRevision": True, "percent": 100}])
            wait("all of them are for all of it", lambda: bounds(namespace, new) == ("4", "4", "true"), 30)
            assert bounds(namespace, old) == (None, None, None)


def test_what_an_absent_controller_missed_is_handed_back(with_knative):
    """The MPA, the last one of Knative, is deleted while nobody is there to see it."""
    with new_namespace() as namespace, Controller("knative-away") as controller:
        revision = knative.make_service(namespace, AUTHORS)
        with knative.load(namespace, revision, "3@60s", "/primes?n=1000"):
            make_autoscaler(namespace, recommenders=SOMEBODY)
            wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
            recommend(namespace, replicas=2)
            wait("it has its floor", lambda: bounds(namespace, revision) == ("2", "3", "true"), 30)
            controller.kill()
            kubectl("delete", "mpa", "--all", "-n", namespace)
            assert bounds(namespace, revision) == ("2", "3", "true")
            controller.start()
            wait("it is handed back", lambda: bounds(namespace, revision) == AS_IT_WAS, 60)


@pytest.mark.parametrize("way", ["Steer", "Own"])
def test_a_new_revision_begins_with_what_was_decided(with_knative, way):
    """Nothing is asked of it, nor of the one before, so that nothing can have been decided anew. With Own a Revision of
    our class follows the first; the last one is of it, too."""
    with new_namespace() as namespace, Controller("knative-new"):
        first = knative.make_service(namespace)
        make_autoscaler(namespace, recommenders=SOMEBODY, policy={"updateMode": "Auto", "knative": way})
        wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        if way == "Own":
            wait("one of our class is ready", lambda: knative.ready_revision(namespace) not in (first, None), 60)
        recommend(namespace, cpu="300m")
        old = wait("a Revision is ready", lambda: knative.ready_revision(namespace), 30)
        wait("its pod is resized", lambda: cpu_of(namespace, old, "user-container") == {"300m"}, 30)
        new = knative.make_service(namespace, labels={"release": "2"})
        assert new != old
        wait("so is the new one's", lambda: cpu_of(namespace, new, "user-container") == {"300m"}, 30)
        assert restarted(namespace, new) == []


@pytest.mark.parametrize("kind", ["Configuration", "Revision"])
def test_other_kinds_are_targets(with_knative, kind):
    with new_namespace() as namespace, Controller("knative-kinds"):
        revision = knative.make_service(namespace, knative.QUICK_TO_ZERO)
        target = {"apiVersion": "serving.knative.dev/v1", "kind": kind,
                  "name": revision if kind == "Revision" else "primes"}
        with knative.load(namespace, revision, "3@120s", "/primes?n=1000"):
            make_autoscaler(namespace, recommenders=SOMEBODY, scaleTargetRef=target)
            wait("it is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
            recommend(namespace, replicas=2, cpu="300m")
            wait("it has its floor", lambda: bounds(namespace, revision) == ("2", "4", "true"), 30)
            wait("its pods are resized", lambda: cpu_of(namespace, revision, "user-container") == {"300m"}, 60)
            kubectl("delete", "mpa", "primes", "-n", namespace)
            wait("all is handed back", lambda: bounds(namespace, revision) == (None, None, None), 20)


def test_parts_are_left_to_the_services_autoscaler(function):
    namespace, revision = function
    wait("the Service is found", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
    time.sleep(1.1)  # so that the others are younger: times have whole seconds
    for kind, name in (("Configuration", "primes"), ("Revision", revision)):
        target = {"apiVersion": "serving.knative.dev/v1", "kind": kind, "name": name}
        make_autoscaler(namespace, kind.lower(), scaleTargetRef=target)
        said = wait(f"that of the {kind} yields", lambda: condition_is(
            namespace, "AbleToScale", "False", "OwnedByAnother", name=kind.lower()), 30)
        assert "Service primes have Revisions in common, and MultidimPodAutoscaler primes" in said["message"]


def test_another_class_and_a_missing_service_are_told(with_knative):
    with new_namespace() as namespace, Controller("knative-no"):
        make_autoscaler(namespace)
        wait("it is missed", lambda: condition_is(namespace, "AbleToScale", "False", "FailedGetScale"), 30)
        service = copy.deepcopy(knative.SERVICE)
        service["spec"]["template"]["metadata"]["annotations"]["autoscaling.knative.dev/class"] = "somebody.example.com"
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(service))
        said = wait("its class is told", lambda: condition_is(
            namespace, "ConfigUnsupported", "True", "UnsupportedTarget"), 60)
        assert "class somebody.example.com" in said["message"]
