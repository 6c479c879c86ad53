"""An MPA that scales a Service of Knative in place of Knative's own autoscaler: its Revisions get ready, have what is
decided, go to zero and come back for a request that is not lost, and all is as it was once the MPA is gone."""
import copy
import json
import re
import threading
import time

import pytest

import knative
from harness import Audit, Controller, condition_is, events, get, kubectl, listing, new_namespace, wait

CLASS, OWNED = "autoscaling.knative.dev/class", "autoscaling.faasrl.io/owned"
OURS = "mpa.faasrl.io"
# With the time of grace behind the activator that makes zero within a minute.
AUTHORS = {**knative.QUICK_TO_ZERO, "autoscaling.knative.dev/max-scale": "3"}


@pytest.fixture
def function(with_knative):
    """A Service of Knative's own class, its MPA, and a controller: namespace, Revision of our class, controller."""
    with new_namespace() as namespace:
        before = knative.make_service(namespace, AUTHORS)
        with Controller("own") as controller:
            make_autoscaler(namespace)
            revision = wait("a Revision of our class is ready", lambda: ready_of_class(namespace, OURS), 60)
            assert revision != before
            yield namespace, revision, controller
            kubectl("delete", "mpa", "--all", "-n", namespace)


def make_autoscaler(namespace, **spec):
    made = copy.deepcopy(knative.IN_ITS_PLACE)
    made["spec"].update(spec)
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(made))


def service_of(namespace):
    return get("services.serving.knative.dev", "primes", namespace)


def class_of(namespace, revision):
    return knative.autoscaler_of(namespace, revision)["metadata"]["annotations"].get(CLASS)


def ready_of_class(namespace, wanted):
    revision = knative.ready_revision(namespace)
    return revision if revision and class_of(namespace, revision) == wanted else None


def conditions(kind, name, namespace):
    return {c["type"]: c["status"] for c in get(kind, name, namespace).get("status", {}).get("conditions", [])}


def is_ready(namespace, revision):
    return conditions("revisions.serving.knative.dev", revision, namespace).get("Ready") == "True"


def mode_of(namespace, revision):
    return get("serverlessservice", revision, namespace)["spec"]["mode"]


def replicas_of(namespace, revision):
    return get("deployment", f"{revision}-deployment", namespace)["spec"]["replicas"]


def containers(namespace, revision, name):
    """By pod: the CPU request in force, which a container has once it runs, and restarts."""
    return {p["metadata"]["name"]: (s["resources"]["requests"]["cpu"], s["restartCount"])
            for p in knative.pods_of(namespace, revision) for s in p["status"].get("containerStatuses", [])
            if s["name"] == name and "requests" in s.get("resources", {})}


def await_zero(namespace, revision):
    wait("requests are led through the activator", lambda: mode_of(namespace, revision) == "Proxy", 90)
    wait("it is inactive", lambda: conditions("podautoscaler", revision, namespace)["Active"] == "False", 20)
    wait("the Deployment goes to zero", lambda: replicas_of(namespace, revision) == 0, 60)
    wait("the last pod goes", lambda: not knative.pods_of(namespace, revision), 60)


class Request(threading.Thread):
    """One that waits at the activator."""

    def __init__(self, namespace, revision):
        super().__init__(daemon=True)
        self.ask = lambda: knative.ask(namespace, revision, timeout=120)
        self.answer = None
        self.start()

    def run(self):
        self.answer = self.ask()

    def status(self):
        self.join(timeout=120)
        return self.answer[0] if self.answer else None


def test_load_is_followed(function):
    namespace, revision, _ = function
    audit = Audit()
    assert service_of(namespace)["metadata"]["annotations"][OWNED] == "true"
    assert any(reason == "Owned" for reason, _ in events(namespace))
    wait("all traffic is its", lambda: knative.traffic_of(namespace) == {revision: 100}, 30)
    with knative.load(namespace, revision, "25@120s", knative.call_of(20, namespace, revision)):
        wait("it is active", lambda: conditions("podautoscaler", revision, namespace) == {
            "Active": "True", "Ready": "True", "SKSReady": "True", "ScaleTargetInitialized": "True"}, 30)
        wait("requests go to the pods", lambda: mode_of(namespace, revision) == "Serve", 20)
        proxy = {cpu for cpu, _ in containers(namespace, revision, "queue-proxy").values()}
        wait("CPU is set in place", lambda: {cpu for cpu, _ in containers(
            namespace, revision, "user-container").values()} == {"400m"}, 90)
        wait("replicas follow", lambda: replicas_of(namespace, revision) >= 2, 90)
        wait("status says so", lambda: knative.autoscaler_of(namespace, revision)["status"]["desiredScale"] >= 2, 10)
        kubectl("scale", "deployment", f"{revision}-deployment", "-n", namespace, "--replicas=1")
        wait("a foreign scale is set right", lambda: replicas_of(namespace, revision) >= 2, 5, every=0.1)
        assert replicas_of(namespace, revision) <= 3, "the author's max-scale"
        knative.check_left_alone(audit, namespace, revision)
    assert {cpu for cpu, _ in containers(namespace, revision, "queue-proxy").values()} == proxy
    for name in ("queue-proxy", "user-container"):
        assert all(restarts == 0 for _, restarts in containers(namespace, revision, name).values())
    assert any(reason == "SuccessfulRescale" for reason, _ in events(namespace))
    assert is_ready(namespace, revision)


def test_zero_and_back(function):
    """Also for requests that come while the controller is not there, and for one in the time of grace."""
    namespace, revision, controller = function
    assert knative.ask(namespace, revision)[0] == 200
    await_zero(namespace, revision)
    wait("the MPA says so", lambda: condition_is(namespace, "ScalingActive", "True", "ScaledToZero"), 20)
    assert condition_is(namespace, "Ready", "True") and is_ready(namespace, revision)
    status, seconds = knative.ask(namespace, revision)
    assert status == 200 and seconds < 15, f"a cold start took {seconds:.1f} s"
    print(f"cold start: {seconds:.2f} s")
    wait("requests go to the pods again", lambda: mode_of(namespace, revision) == "Serve", 10)

    await_zero(namespace, revision)
    controller.kill()
    waiting = Request(namespace, revision)
    time.sleep(3)
    assert replicas_of(namespace, revision) == 0 and waiting.is_alive()
    controller.start()
    assert waiting.status() == 200
    assert is_ready(namespace, revision)

    wait("it is behind the activator again", lambda: conditions(
        "podautoscaler", revision, namespace)["Active"] == "False", 90)
    pods = {p["metadata"]["name"] for p in knative.pods_of(namespace, revision)}
    with knative.load(namespace, revision, "5@15s"):
        wait("a request brings it back", lambda: mode_of(namespace, revision) == "Serve", 15)
    assert {p["metadata"]["name"] for p in knative.pods_of(namespace, revision)} == pods, "none was ended"


def test_each_revision_of_a_split_gets_its_share(with_knative):
    """Somebody else decides on four replicas, as in test_knative_steer.py; a few requests say that it is not idle."""
    with new_namespace() as namespace, Controller("own-split"):
        knative.make_service(namespace, knative.QUICK_TO_ZERO)
        make_autoscaler(namespace, recommenders=[{"name": "the-test"}])
        old = wait("a Revision of our class is ready", lambda: ready_of_class(namespace, OURS), 60)
        new = knative.make_service(namespace, knative.QUICK_TO_ZERO, labels={"release": "2"}, traffic=[
            {"revisionName": old, "percent": 75}, {"latestRevision": True, "percent": 25}])
        assert class_of(namespace, new) == OURS
        wait("the traffic is split", lambda: knative.traffic_of(namespace) == {old: 75, new: 25}, 30)
        with knative.load(namespace, old, "3@120s", "/primes?n=1000"), \
                knative.load(namespace, new, "1@120s", "/primes?n=1000"):
            wait("both are awake", lambda: all(mode_of(namespace, r) == "Serve" for r in (old, new)), 40)
            kubectl("patch", "mpa", "primes", "-n", namespace, "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": {"desiredReplicas": 4}}))
            wait("three of four are for three quarters, and one for the rest",
                 lambda: [replicas_of(namespace, r) for r in (old, new)] == [3, 1], 40)
            kubectl("scale", "deployment", f"{old}-deployment", "-n", namespace, "--replicas=1")
            wait("a foreign scale is set right", lambda: replicas_of(namespace, old) == 3, 5, every=0.1)


def was_scaled_to(n, namespace, revision):
    return replicas_of(namespace, revision) == n or any(
        e["involvedObject"]["name"] == f"{revision}-deployment" and re.search(rf"\bto {n}\b", e["message"])
        for e in listing("events", namespace))


def test_a_new_revision_and_handing_back(function):
    namespace, old, _ = function
    new = knative.make_service(namespace, {**AUTHORS, "autoscaling.knative.dev/initial-scale": "2"},
                               labels={"release": "2"})
    assert new != old and class_of(namespace, new) == OURS
    # Of what it had a moment ago events tell: without requests it may be one by now.
    wait("it began with its initial-scale", lambda: was_scaled_to(2, namespace, new), 10)
    wait("all traffic is the new one's", lambda: knative.traffic_of(namespace) == {new: 100}, 30)
    wait("the old one goes", lambda: replicas_of(namespace, old) == 0, 90)
    kubectl("delete", "mpa", "primes", "-n", namespace)
    left = replicas_of(namespace, new)
    last = wait("Knative's own class is back", lambda: ready_of_class(namespace, None) or ready_of_class(
        namespace, "kpa.autoscaling.knative.dev"), 60)
    service = service_of(namespace)
    assert CLASS not in service["spec"]["template"]["metadata"].get("annotations", {})
    assert OWNED not in service["metadata"]["annotations"]
    assert replicas_of(namespace, new) == left or knative.traffic_of(namespace) == {last: 100}
    wait("all traffic is Knative's", lambda: knative.traffic_of(namespace) == {last: 100}, 30)
    assert knative.ask(namespace, last)[0] == 200


def test_what_an_absent_controller_missed_is_handed_back(function):
    """The MPA, the last one of Knative, is deleted while nobody is there to see it."""
    namespace, revision, controller = function
    controller.kill()
    kubectl("delete", "mpa", "primes", "-n", namespace)
    assert service_of(namespace)["metadata"]["annotations"][OWNED] == "true"
    controller.start()
    last = wait("Knative's own class is back", lambda: ready_of_class(namespace, None) or ready_of_class(
        namespace, "kpa.autoscaling.knative.dev"), 90)
    assert last != revision and OWNED not in service_of(namespace)["metadata"]["annotations"]
    wait("all traffic is Knative's", lambda: knative.traffic_of(namespace) == {last: 100}, 30)
    assert knative.ask(namespace, last)[0] == 200
