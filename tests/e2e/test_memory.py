"""What the controller takes, and that it gives all of it back. Always the release build: sanitizers have
memory of their own."""
import base64
import http.client
import json
import re
import ssl
import tempfile
import time
from urllib.parse import urlsplit

import pytest
import yaml

from harness import Audit, BUILD, Controller, EXAMPLE, condition_is, deploy_function, kubectl, wait

pytestmark = pytest.mark.usefixtures("real_pods")
RELEASE = BUILD / "faasrl-mpa"
QUICK = ["--interval=500ms", "--status-interval=500ms", "--writes-per-second=1000", "--write-burst=1000"]
MOST_MIB = 16
MOST_GROWTH_MIB = 2  # in half of the rounds: what is remembered about events, of which there is a most
ROUNDS = 1000
ALIVE = 40  # MPAs at a time: each is there for long enough to be decided on and to have its status written
VALGRIND = ["valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible",
            "--error-exitcode=99", "--num-callers=30"]


class Api:
    """The API server over one connection, as admin: a kubectl for each request would take an hour."""

    def __init__(self):
        config = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(server["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(base64.b64decode(user["client-certificate-data"]))
            pem.write(base64.b64decode(user["client-key-data"]))
            pem.flush()
            context.load_cert_chain(pem.name)
        self.connection = http.client.HTTPSConnection(urlsplit(server["server"]).netloc, context=context)

    def __call__(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, body and json.dumps(body), {"Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
        return json.loads(text)


# What a round has as its target; primes is there and has a pod, idle is there and has none.
TARGETS = ["primes", "idle", "missing", "idle", "missing"]


def rounds(namespace, count, begin=0):
    """Creates, changes and deletes `count` MPAs of all sorts, ALIVE of them being there at a time."""
    api = Api()
    path = f"/apis/autoscaling.faasrl.io/v1alpha1/namespaces/{namespace}/multidimpodautoscalers"
    for i in range(begin, begin + count + ALIVE):
        if i < begin + count:
            body = yaml.safe_load(EXAMPLE)
            body["metadata"]["name"] = f"round-{i}"
            body["spec"]["scaleTargetRef"]["name"] = TARGETS[i % len(TARGETS)]
            body["spec"]["policy"]["updateMode"] = ["Off", "Auto", "Initial"][i % 3]
            body["spec"]["recommenders"] = [{"name": ["threshold", "ppo", "elsewhere"][i % 3]}]
            api("POST", path, body)
            api("PATCH", f"{path}/round-{i}", change(i), "application/merge-patch+json")
        if i >= begin + ALIVE:
            api("DELETE", f"{path}/round-{i - ALIVE}")


def change(i):
    """Of the bounds, of the target, to a target that cannot be scaled, to a pause."""
    return [{"spec": {"constraints": {"global": {"maxReplicas": 7}}}},
            {"spec": {"scaleTargetRef": {"name": TARGETS[(i + 1) % len(TARGETS)]}}},
            {"spec": {"scaleTargetRef": {"kind": "DaemonSet"}}},
            {"metadata": {"annotations": {"autoscaling.faasrl.io/paused": "true"}}}][i % 4]


@pytest.fixture
def targets(namespace):
    deploy_function(namespace)
    kubectl("create", "deployment", "idle", "-n", namespace, "--image=local/function:1", "--replicas=0")
    return namespace


def passes(controller):
    return controller.log().count("a pass is done")


def wait_until_seen(controller, namespace, count):
    """Every one came and went, and nothing waits to be written any more."""
    wait("all were followed and are forgotten", lambda: controller.alive() and all(
        len(re.findall(f"{said}.* mpa={namespace}/round-", controller.log())) >= count
        for said in ("an MPA is followed", "an MPA is gone")), 120)
    quiet = False
    while not quiet:
        audit = Audit()
        time.sleep(2)
        quiet = not audit.writes()


def test_memory_stays_small_and_does_not_grow(targets):
    with Controller("memory", *QUICK, "--history=1h", binary=RELEASE) as controller:
        kubectl("apply", "-n", targets, "-f", "-", stdin=EXAMPLE)
        wait("the MPA is ready", lambda: condition_is(targets, "Ready", "True"), 40)
        wait("it is the only one", lambda: "mpas=1 " in controller.log().splitlines()[-1], 60)
        first = passes(controller)
        wait("ten passes", lambda: passes(controller) >= first + 10, 40)
        small = controller.memory_mib()
        print(f"with 1 MPA: {small:.1f} MiB")
        assert small < MOST_MIB
        kubectl("delete", "mpa", "primes", "-n", targets)

        rounds(targets, ROUNDS // 2)
        wait_until_seen(controller, targets, ROUNDS // 2)
        half = controller.memory_mib()
        rounds(targets, ROUNDS // 2, begin=ROUNDS)
        wait_until_seen(controller, targets, ROUNDS)
        end = controller.memory_mib()
        print(f"after {ROUNDS // 2} rounds {half:.1f} MiB, after {ROUNDS} {end:.1f} MiB")
        assert end - half < MOST_GROWTH_MIB


def test_nothing_leaks_in_a_thousand_rounds(targets):
    # So much slower, it may not renew a lease in time; and valgrind makes calls of its own.
    with Controller("valgrind", *QUICK, "--interval=2s", "--leader-elect=false", f"--namespace={targets}",
                    "--confine=false", binary=RELEASE, wrapper=VALGRIND) as controller:
        began = time.monotonic()
        rounds(targets, ROUNDS)
        wait_until_seen(controller, targets, ROUNDS)
        print(f"{ROUNDS} rounds in {time.monotonic() - began:.0f} s")
    log = controller.log()
    for reason in ("FailedGetScale", "OwnedByAnother", "UnsupportedTarget"):
        assert log.count(f"reason={reason}") > ROUNDS / 20, "too few were there for long enough"
    assert "ERROR SUMMARY: 0 errors" in log, log[-6000:]
    assert "definitely lost: 0 bytes" in log or "no leaks are possible" in log
