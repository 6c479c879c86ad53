"""New pods start with the size that is recommended, or with more until they are ready."""
import time
from datetime import datetime

import pytest
import yaml

from harness import (Audit, Controller, FUNCTION, apply, condition_is, cpu_requests, deploy_function, events, kubectl,
                     pods, restarts, wait)
from test_targets import autoscaler, recommend

pytestmark = pytest.mark.usefixtures("real_pods")
TARGET = ("apps/v1", "Deployment", "primes")


def mpa_with(**policy):
    made = yaml.safe_load(autoscaler(*TARGET))
    made["spec"]["policy"] = policy
    return yaml.safe_dump(made)


def replace_pod(namespace):
    """Deletes the only pod; returns the one that comes in its place."""
    old = pods(namespace)[0]["metadata"]
    kubectl("delete", "pod", old["name"], "-n", namespace, "--wait=false")
    return wait("a new pod", lambda: next((p["metadata"] for p in pods(namespace) if p["metadata"]["uid"] != old["uid"]),
                                          None), 30, every=0.1)


def ready_since(pod):
    for c in pod["status"].get("conditions", []):
        if c["type"] == "Ready" and c["status"] == "True":
            return datetime.fromisoformat(c["lastTransitionTime"])
    return None


@pytest.mark.parametrize("mode", ["Auto", "Initial"])
def test_a_new_pod_is_given_its_size_while_it_starts(namespace, mode):
    """Also when it is the only one, of which nothing is measured yet, and when the controller has started anew."""
    deploy_function(namespace)
    with Controller(f"new-{mode.lower()}", "--leader-elect=false", f"--namespace={namespace}") as controller:
        apply(mpa_with(updateMode=mode), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 1, "300m")
        wait("it is taken over", lambda: condition_is(namespace, "RecommendationProvided", "True"), 20)
        time.sleep(1)
        for again in range(3):
            if again == 2:
                controller.stop()
                controller.log_file.unlink()
                controller.start()
            audit = Audit()
            made = replace_pod(namespace)
            wait("it has its size", lambda: cpu_requests(namespace) == [300], 30)
            pod = wait("it is ready", lambda: next(filter(ready_since, pods(namespace)), None), 30)
            asked = [e for e in audit.entries(namespace) if e["objectRef"].get("subresource") == "resize" and
                     e["objectRef"]["name"] == made["name"]]
            assert len(asked) == 1
            late = datetime.fromisoformat(asked[0]["requestReceivedTimestamp"]) - ready_since(pod)
            assert late.total_seconds() < 1, "times of conditions have whole seconds"
    assert restarts(namespace) == 0


def slow_to_start(seconds):
    objects = list(yaml.safe_load_all(FUNCTION))
    pod = next(o for o in objects if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    pod["containers"][0]["readinessProbe"]["initialDelaySeconds"] = seconds
    return yaml.safe_dump_all(objects)


def start_up(namespace, last):
    """What a new pod is asked to have before it is ready; and what it has, up to what it should have at last. When its
    kubelet does what is asked is the kubelet's: at the latest with what makes the pod ready."""
    made, asked, sizes = replace_pod(namespace), set(), []
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        pod = next((p for p in pods(namespace) if p["metadata"]["uid"] == made["uid"]), None)
        size = (bool(ready_since(pod)), *cpu_requests(namespace)) if pod else None
        if size and size[1:] and size not in sizes:
            sizes.append(size)
        if size and not size[0]:
            asked.add(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        if size == (True, last):
            break
        time.sleep(0.2)
    return asked, sizes


# The template has 200m, and maxAllowed is 400m.
@pytest.mark.parametrize("mode, size, boost", [("Auto", 200, {"type": "Factor", "factor": 3}),
                                               ("Initial", 300, {"type": "Quantity", "quantity": "100m"})])
def test_a_boost_goes_when_the_pod_is_ready(namespace, mode, size, boost):
    apply(slow_to_start(4), namespace)
    kubectl("rollout", "status", "deployment/primes", "-n", namespace, "--timeout=60s")
    boost = {"cpu": {**boost, "durationSeconds": 3}}
    with Controller(f"boost-{mode.lower()}", "--interval=20s", "--leader-elect=false",
                    f"--namespace={namespace}") as controller:
        apply(mpa_with(updateMode=mode, startupBoost=boost), namespace)
        wait("it is followed", lambda: condition_is(namespace, "AbleToScale", "True"), 30)
        recommend(namespace, 1, f"{size}m")
        wait("it is taken over", lambda: condition_is(namespace, "RecommendationProvided", "True"), 20)
        asked, sizes = start_up(namespace, size)
        assert "400m" in asked and (True, 400) in sizes and sizes[-1] == (True, size), (asked, sizes)
        wait("it is told", lambda: "StartupBoosted" in dict(events(namespace)), 10)

        # Another controller ends what this one began.
        replace_pod(namespace)
        wait("it is boosted", lambda: cpu_requests(namespace) == [400], 20)
        controller.kill()
        controller.log_file.unlink()
        controller.start()
        wait("the boost is over", lambda: cpu_requests(namespace) == [size], 40)
    assert restarts(namespace) == 0
