"""Everything around the controller fails in turn. It goes on, changes nothing that it should not, and
says what is wrong."""
import http.server
import json
import re
import socket
import struct
import threading
import time
import urllib.request

import pytest

from harness import (Audit, Controller, EXAMPLE, KUBECONFIG, Load, PROMETHEUS, apply, cluster, condition,
                     condition_is, cpu_requests, deploy_function, events, function_url, get, kubectl, mpa,
                     pods, replicas, restarts, token, wait)

pytestmark = pytest.mark.usefixtures("real_pods")
RENEW_DEADLINE_S = 10
LEASE_S = 15
QUICK = ["--interval=1s", "--status-interval=1s"]
NOT_THE_TARGET = {("patch", "multidimpodautoscalers/status"), ("create", "events"), ("patch", "events")}
# Without load this one changes nothing: its function has the least size already.
STEADY = EXAMPLE.replace("cpu: 100m", "cpu: 200m")


def ready(namespace, timeout=40):
    return wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), timeout)


def change(namespace, **spec):
    """Sets minReplicas and the least and most CPU of the MPA."""
    bounds = {"minAllowed": {"cpu": spec["cpu"]}, "maxAllowed": {"cpu": spec["cpu"]}}
    patch = {"spec": {"constraints": {
        "global": {"minReplicas": spec["min_replicas"]},
        "container": [{"name": "function", "requests": bounds}]}}}
    if "annotation" in spec:
        patch["metadata"] = {"annotations": {"test/filler": spec["annotation"]}}
    kubectl("patch", "mpa", "primes", "-n", namespace, "--type=merge", "-p", json.dumps(patch))


def wait_sizes(namespace, count, cpu, timeout=60):
    wait(f"{count} pods have {cpu}m", lambda: cpu_requests(namespace) == [cpu] * count, timeout)


def nothing_was_done_twice(audit, namespace, resizes, scales):
    writes = audit.writes(namespace)
    assert writes.count(("patch", "pods/resize")) == resizes, writes
    assert writes.count(("patch", "deployments/scale")) == scales, writes


# --- between the controller and a server --------------------------------------------------------
class Proxy:
    """TCP to a port of this machine, which a test can cut, stall and refuse."""

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        self.flowing = threading.Event()
        self.flowing.set()
        self.refusing = False
        self.cut_at = None  # the size of a chunk from the server that is to be cut in its middle
        self.cuts = 0
        self.sockets = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.flowing.set()
        self.listener.close()
        self.cut()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = None if self.refusing else socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                server = None
            if server is None:
                self.reset(client)
                continue
            self.sockets |= {client, server}
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, from_server):
        try:
            while data := source.recv(1 << 16):
                self.flowing.wait()
                if from_server and self.cut_at and len(data) >= self.cut_at:
                    self.cut_at = None
                    self.cuts += 1
                    sink.sendall(data[:len(data) // 2])
                    time.sleep(0.1)  # until it has been read: a reset throws away what has not
                    self.cut()
                    return
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            self.sockets.discard(end)
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    @staticmethod
    def reset(end):
        try:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.shutdown(socket.SHUT_RD)  # wakes the thread that reads it
            end.close()
        except OSError:
            pass

    def cut(self):
        for end in list(self.sockets):
            self.sockets.discard(end)
            self.reset(end)

    def refuse(self):
        self.refusing = True
        self.cut()

    def let_through(self):
        self.refusing = False
        self.flowing.set()

    def stall(self):
        self.flowing.clear()


@pytest.fixture
def proxy():
    server = json.loads(kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
    with Proxy(int(server.rsplit(":", 1)[1])) as made:
        yield made


# --- the API server -------------------------------------------------------------------------------
def test_goes_on_after_a_restart_of_the_api_server(namespace):
    deploy_function(namespace)
    with Controller("restart", *QUICK) as controller:
        apply(STEADY, namespace)
        ready(namespace)
        audit = Audit()
        began = time.monotonic()
        cluster("restart", "kube-apiserver")
        outage = time.monotonic() - began
        time.sleep(3)
        if controller.process.poll() is not None:
            assert outage > RENEW_DEADLINE_S - 2, f"it ended after an outage of only {outage:.0f} s"
            assert controller.process.returncode == 1
            controller.start()
        # Kubernetes' own would take half a minute until they see that it is back.
        cluster("restart", "kube-controller-manager")
        cluster("restart", "kube-scheduler")
        change(namespace, min_replicas=2, cpu="300m")
        wait_sizes(namespace, 2, 300)
        nothing_was_done_twice(audit, namespace, resizes=2, scales=1)
        ready(namespace)
        assert restarts(namespace) == 0


def test_goes_on_after_an_outage_that_is_longer_than_any_timeout(namespace):
    deploy_function(namespace)
    with Controller("outage", *QUICK, "--leader-elect=false") as controller:
        apply(STEADY, namespace)
        ready(namespace)
        audit = Audit()
        cluster("stop", "kube-apiserver")
        time.sleep(15)
        assert controller.alive()
        cluster("start", "kube-apiserver")
        change(namespace, min_replicas=1, cpu="300m")
        wait_sizes(namespace, 1, 300)
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)
        ready(namespace)


def test_lists_again_when_the_history_is_gone(namespace, proxy):
    """410: what went while nobody could watch is forgotten, what came is found, nothing is done twice."""
    deploy_function(namespace)
    doomed = STEADY.replace("metadata:\n  name: primes", "metadata:\n  name: doomed").replace(
        "name: primes", "name: absent")
    with Controller("expired", *QUICK, "--leader-elect=false", server=proxy.url) as controller:
        apply(STEADY, namespace)
        apply(doomed, namespace)
        ready(namespace)
        wait("the other is followed", lambda: condition(namespace, "AbleToScale", "doomed"), 20)
        proxy.stall()
        audit = Audit()
        old = pods(namespace)[0]["metadata"]["name"]
        kubectl("delete", "mpa", "doomed", "-n", namespace)
        kubectl("delete", "pod", old, "-n", namespace, "--wait=false")
        wait("the new pod runs", lambda: cpu_requests(namespace) == [200], 60)
        change(namespace, min_replicas=1, cpu="300m")
        cluster("expire-watches")
        assert audit.writes(namespace) == []
        mark = len(controller.log())
        proxy.let_through()
        wait_sizes(namespace, 1, 300)
        ready(namespace)
        said = controller.log()[mark:]
        assert "the history is gone" in said, said[-3000:]
        assert mpa(namespace)["status"]["lastDecision"]["observation"]["pods"] == 1
        assert "doomed" not in audit_names(audit, namespace)
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)


def audit_names(audit, namespace):
    """The names of the MPAs whose status was written."""
    with open(audit.path) as log:
        log.seek(audit.start)
        refs = [json.loads(line)["objectRef"] for line in log if '"subresource":"status"' in line]
    return {r["name"] for r in refs if r["resource"] == "multidimpodautoscalers" and
            r.get("namespace") == namespace}
