"""An MPA on a Service of Knative: its autoscaler is steered by bounds, CPU is set in place, zero and the
activator go on working, and everything is as it was once the MPA is gone."""
import json
import time

import pytest
import yaml

import knative
from harness import (Controller, Load, ROOT, condition_is, events, get, kubectl, mpa, new_namespace, wait)

MIN, MAX = "autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/max-scale"
STEERED = "autoscaling.faasrl.io/steered"
SERVICE, AUTOSCALER = yaml.safe_load_all(knative.EXAMPLE)
BUSY = "/sentiment?n=5000"


@pytest.fixture(scope="module", autouse=True)
def rights(with_knative):
    kubectl("apply", "-f", ROOT / "deploy/rbac-knative.yaml")


@pytest.fixture
def function(with_knative):
    """A Service that goes to zero quickly, its MPA, and a controller: namespace and Revision."""
    with new_namespace() as namespace:
        revision = knative.make_service(namespace, autoscaling=knative.QUICK_TO_ZERO)
        with Controller("knative"):
            kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(AUTOSCALER))
            yield namespace, revision
            kubectl("delete", "mpa", "--all", "-n", namespace)


def bounds(namespace, revision):
    annotations = knative.autoscaler_of(namespace, revision)["metadata"].get("annotations", {})
    return annotations.get(MIN), annotations.get(MAX), annotations.get(STEERED)


def containers(namespace, revision):
    """By pod and container: the CPU requests in force, and restarts."""
    return {(p["metadata"]["name"], s["name"]): (s.get("resources", {}).get("requests", {}).get("cpu"),
                                                 s["restartCount"])
            for p in knative.pods_of(namespace, revision) for s in p["status"].get("containerStatuses", [])}


def cpu_of(namespace, revision, container):
    return {cpu for (_, name), (cpu, _) in containers(namespace, revision).items() if name == container}


def url_of(namespace, revision, path=BUSY):
    return f"http://{knative.address_of(namespace, revision)}{path}"


def test_load_zero_and_back(function):
    namespace, revision = function
    assert knative.ask(namespace, revision)[0] == 200
    proxy = cpu_of(namespace, revision, "queue-proxy")
    with Load(url_of(namespace, revision), "25@150s"):
        wait("CPU is set in place", lambda: cpu_of(namespace, revision, "user-container") == {"400m"}, 90)
        wait("the floor rises", lambda: int(bounds(namespace, revision)[0] or 0) >= 2, 90)
        wait("pods follow", lambda: len(knative.pods_of(namespace, revision)) >= 2, 30)
        assert bounds(namespace, revision)[1:] == ("4", "true")
        # Somebody else's bound is seen and set right.
        kubectl("annotate", "podautoscaler", revision, "-n", namespace, "--overwrite", f"{MIN}=1")
        wait("the floor is ours again", lambda: int(bounds(namespace, revision)[0] or 0) >= 2, 30)
    assert cpu_of(namespace, revision, "queue-proxy") == proxy
    assert all(restarts == 0 for _, restarts in containers(namespace, revision).values())
    assert any(reason == "SuccessfulRescale" for reason, _ in events(namespace))

    wait("without requests there is no floor", lambda: bounds(namespace, revision)[0] is None, 60)
    wait("Knative ends the last pod", lambda: not knative.pods_of(namespace, revision), 120)
    wait("the MPA says so", lambda: condition_is(namespace, "ScalingActive", "True", "ScaledToZero"), 20)
    assert condition_is(namespace, "Ready", "True")
    status, _ = knative.ask(namespace, revision)  # wakes it, and is not lost
    assert status == 200


def test_a_new_revision_goes_on_and_deleting_hands_back(function):
    namespace, old = function
    before = bounds(namespace, old)
    with Load(url_of(namespace, old), "15@25s"):
        wait("it is steered", lambda: bounds(namespace, old)[2] == "true", 60)
        wait("CPU is set", lambda: cpu_of(namespace, old, "user-container") == {"400m"}, 60)
    new = knative.make_service(namespace, autoscaling=knative.QUICK_TO_ZERO, labels={"release": "2"})
    assert new != old
    with Load(url_of(namespace, new), "15@60s"):
        wait("the new one is steered", lambda: bounds(namespace, new)[2] == "true", 60)
        wait("its pods get what was decided", lambda: cpu_of(namespace, new, "user-container") == {"400m"}, 60)
        wait("the old one is left", lambda: bounds(namespace, old) == before, 30)
        kubectl("delete", "mpa", "primes", "-n", namespace)
        wait("all is handed back", lambda: bounds(namespace, new) == before, 20)
        time.sleep(8)
        assert bounds(namespace, new) == before and bounds(namespace, old) == before


def test_another_class_and_a_missing_service_are_told(with_knative):
    with new_namespace() as namespace, Controller("knative-no"):
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(AUTOSCALER))
        wait("it is missed", lambda: condition_is(namespace, "AbleToScale", "False", "FailedGetScale"), 30)
        service = json.loads(json.dumps(SERVICE))
        service["spec"]["template"]["metadata"] = {"annotations": {
            "autoscaling.knative.dev/class": "somebody.example.com"}}
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(service))
        said = wait("its class is told", lambda: condition_is(
            namespace, "ConfigUnsupported", "True", "UnsupportedTarget"), 60)
        assert "class somebody.example.com" in said["message"]
        assert get("services.serving.knative.dev", "primes", namespace)
        kubectl("delete", "mpa", "--all", "-n", namespace)
