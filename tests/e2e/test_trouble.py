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
from datetime import datetime, timezone

import pytest

from harness import (Audit, Controller, EXAMPLE, Load, PROMETHEUS, ROOT, apply, cluster, condition,
                     condition_is, cpu_requests, deploy_function, events, function_url, kubectl, listing, mpa,
                     pods, replicas, restarts, token, wait)

pytestmark = pytest.mark.usefixtures("real_pods")
RENEW_DEADLINE_S = 10
LEASE_S = 15
QUICK = ["--interval=500ms", "--status-interval=500ms"]
NOT_THE_TARGET = {("patch", "multidimpodautoscalers/status"), ("create", "events"), ("patch", "events")}
# Without load this one changes nothing: its function has the least size already.
STEADY = EXAMPLE.replace("cpu: 100m", "cpu: 200m")


def ready(namespace, timeout=40):
    return wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), timeout)


def change(namespace, min_replicas, cpu, filler=""):
    """Sets minReplicas and the only CPU that the MPA allows; the filler makes it a large object."""
    bounds = {"minAllowed": {"cpu": cpu}, "maxAllowed": {"cpu": cpu}}
    patch = {"metadata": {"annotations": {"test/filler": filler}},
             "spec": {"constraints": {"global": {"minReplicas": min_replicas},
                                      "container": [{"name": "function", "requests": bounds}]}}}
    kubectl("patch", "mpa", "primes", "-n", namespace, "--type=merge", "-p", json.dumps(patch))


def asked_of_pods(namespace):
    """The CPU that each pod is to have. A kubelet that lost the API server carries it out late."""
    return [p["spec"]["containers"][0]["resources"]["requests"]["cpu"] for p in pods(namespace)]


def wait_asked(namespace, *cpu):
    wait(f"pods are to have {cpu}", lambda: asked_of_pods(namespace) == list(cpu), 60)


def nothing_was_done_twice(audit, namespace, resizes, scales):
    writes = audit.writes(namespace)
    assert writes.count(("patch", "pods/resize")) == resizes, writes
    assert writes.count(("patch", "deployments/scale")) == scales, writes


# --- between the controller and a server --------------------------------------------------------
class Proxy:
    """TCP to a port of this machine, which a test can cut and stall."""

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        self.flowing = threading.Event()
        self.flowing.set()
        self.cut_after = None  # so many more bytes come from the server, then everything is cut
        self.cut_time = None
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
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                self.reset(client)
                continue
            self.sockets |= {client, server}
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, from_server):
        try:
            while data := source.recv(1 << 16):
                self.flowing.wait()
                if from_server and self.cut_after is not None:
                    data = data[:self.cut_after]
                    self.cut_after -= len(data)
                sink.sendall(data)
                if from_server and self.cut_after == 0:
                    self.cut_after = None
                    time.sleep(0.1)  # until it has been read: a reset throws away what has not
                    self.cut_time = datetime.now(timezone.utc)
                    self.cut()
                    return
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

    def let_through(self):
        self.flowing.set()

    def stall(self):
        self.flowing.clear()


@pytest.fixture
def proxy():
    server = json.loads(kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
    with Proxy(int(server.rsplit(":", 1)[1])) as made:
        yield made


# --- the API server -------------------------------------------------------------------------------
def wake_the_others():
    """Else Kubernetes' own components take up to a minute until they see that the API server is back."""
    for name in ("kube-controller-manager", "kube-scheduler", "kubelet", "pod-targets"):
        cluster("restart", name)


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
            # The last renewal may have been two seconds before.
            assert outage > RENEW_DEADLINE_S - 2, f"it ended after an outage of only {outage:.0f} s"
            assert controller.process.returncode == 1
            controller.log_file.unlink()
            controller.start()
        wake_the_others()
        change(namespace, min_replicas=2, cpu="300m")
        wait_asked(namespace, "300m", "300m")
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
        wake_the_others()
        change(namespace, min_replicas=1, cpu="300m")
        wait_asked(namespace, "300m")
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)
        ready(namespace)


def test_lists_again_when_the_history_is_gone(namespace, proxy):
    """410: what went while nobody could watch is forgotten, what came is found, nothing is done twice."""
    deploy_function(namespace)
    doomed = STEADY.replace("metadata:\n  name: primes", "metadata:\n  name: doomed").replace(
        "name: primes", "name: absent")
    with Controller("expired", *QUICK, "--leader-elect=false", f"--namespace={namespace}",
                    server=proxy.url) as controller:
        apply(STEADY, namespace)
        apply(doomed, namespace)
        ready(namespace)
        wait("the other is followed", lambda: condition(namespace, "AbleToScale", "doomed"), 20)
        proxy.stall()
        time.sleep(1)  # what is under way arrives
        audit = Audit()
        kubectl("delete", "mpa", "doomed", "-n", namespace)
        kubectl("delete", "pod", pods(namespace)[0]["metadata"]["name"], "-n", namespace, "--wait=false")
        wait("a new pod comes", lambda: asked_of_pods(namespace) == ["200m"], 60)
        wait("the old one is gone", lambda: len(listing("pods", namespace, "-l", "app=primes")) == 1, 60)
        change(namespace, min_replicas=1, cpu="300m")
        cluster("expire-watches")
        wake_the_others()
        assert audit.writes(namespace) == []
        assert "mpas=2" in controller.log().splitlines()[-1]
        proxy.cut()
        proxy.let_through()
        wait_asked(namespace, "300m")
        ready(namespace)
        assert "the history is gone" in controller.log()
        assert "mpas=1" in controller.log().splitlines()[-1]
        assert mpa(namespace)["status"]["lastDecision"]["observation"]["pods"] == 1
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)


# --- the network ----------------------------------------------------------------------------------
def test_connections_that_are_cut_within_an_event_or_fall_silent_lose_nothing(namespace, proxy):
    deploy_function(namespace)
    # Without new figures in status nothing is written until the MPA changes.
    with Controller("network", *QUICK, "--status-interval=1h", "--leader-elect=false",
                    server=proxy.url) as controller:
        apply(STEADY, namespace)
        ready(namespace)
        time.sleep(1)
        audit = Audit()
        proxy.cut_after = 30000
        change(namespace, min_replicas=1, cpu="300m", filler="x" * 100000)
        wait_asked(namespace, "300m")
        # So it was the watch that brought a third of the change, not the answer to a write.
        assert proxy.cut_time and all(
            datetime.fromisoformat(e["requestReceivedTimestamp"]) > proxy.cut_time
            for e in audit.entries(namespace))
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)

        proxy.stall()
        time.sleep(1)
        audit = Audit()
        change(namespace, min_replicas=2, cpu="400m")
        time.sleep(8)
        assert controller.alive() and audit.writes(namespace) == []
        proxy.let_through()
        wait_asked(namespace, "400m", "400m")
        nothing_was_done_twice(audit, namespace, resizes=2, scales=1)


def test_a_token_that_is_replaced_is_read_again(namespace, proxy):
    deploy_function(namespace)
    with Controller("token", *QUICK, server=proxy.url) as controller:
        apply(STEADY, namespace)
        ready(namespace)
        kubectl("delete", "serviceaccount", "faasrl-mpa", "-n", "faasrl-mpa")
        kubectl("apply", "-f", ROOT / "deploy/rbac.yaml")
        new = token()
        wait("the old token is refused", lambda: "Unauthorized" in controller.log(), 30, every=0.1)
        audit = Audit()
        proxy.cut()  # the watches that are open have to show the token again, too
        change(namespace, min_replicas=1, cpu="300m")
        time.sleep(1)
        assert controller.alive() and audit.writes() == []
        controller.token_file.write_text(new)
        wait_asked(namespace, "300m")
        nothing_was_done_twice(audit, namespace, resizes=1, scales=0)
        ready(namespace)


def test_the_second_controller_waits_until_the_first_is_dead(namespace):
    nowhere = EXAMPLE.replace("name: primes", "name: nowhere")
    first, second = Controller("first", *QUICK), Controller("second", *QUICK, "--listen=off")
    for one in (first, second):
        one.log_file.unlink(missing_ok=True)
    first.start()
    second.launch()
    try:
        apply(nowhere, namespace)
        wait("the first works", lambda: condition(namespace, "AbleToScale", "nowhere"), 20)
        time.sleep(4)
        assert "this replica leads" not in second.log() and first.alive() and second.alive()
        kubectl("delete", "mpa", "nowhere", "-n", namespace)
        first.kill()
        killed = time.monotonic()
        wait("the second leads", lambda: second.alive() and "this replica leads" in second.log(),
             LEASE_S + 6, every=0.1)
        print(f"took over after {time.monotonic() - killed:.1f} s")
        apply(nowhere, namespace)
        wait("the second works", lambda: condition(namespace, "AbleToScale", "nowhere"), 20)
    finally:
        first.kill()
        second.stop()


# --- Prometheus -------------------------------------------------------------------------------------
class Prometheus(http.server.ThreadingHTTPServer):
    """Prometheus behind a door that can spoil its answers. An answer is (code, body), or None for none."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Door)
        self.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.spoil = None

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.spoil = None
        self.shutdown()
        self.server_close()


class Door(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        request = urllib.request.Request(PROMETHEUS + self.path, asked)
        with urllib.request.urlopen(request, timeout=10) as answer:
            true = answer.read().decode()
        spoil = self.server.spoil
        code, body = spoil(true, asked.decode()) if spoil else (200, true)
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body.encode())
        except OSError:
            pass  # it waits no longer

    def log_message(self, *args):
        pass


def slow(true, asked):
    time.sleep(30)
    return 200, true


def without_latency(true, asked):
    return EMPTY if "bucket" in asked else (200, true)


EMPTY = 200, '{"status":"success","data":{"resultType":"vector","result":[]}}'
REFUSAL = '{"status":"error","errorType":"timeout","error":"the store is full of bees"}'
TROUBLES = {  # what it answers; the reason, and what its message has to name
    "html": (lambda true, _: (200, "<html><body>It works!</body></html>"), "FailedGetMetrics",
             "cannot be read.*It works!"),
    "truncated": (lambda true, _: (200, true[:len(true) // 2]), "FailedGetMetrics", "cut short"),
    "refused": (lambda *_: (503, REFUSAL), "FailedGetMetrics", "full of bees"),
    "refused with 200": (lambda *_: (200, REFUSAL), "FailedGetMetrics", "full of bees"),
    "broken": (lambda *_: (500, "out of cheese"), "FailedGetMetrics", "500.*out of cheese"),
    "empty": (lambda *_: EMPTY, "FailedGetMetrics", "no CPU usage of the 1 pod"),
    "not a number": (lambda true, _: (200, re.sub(r'"[0-9.e+-]+"\]', '"NaN"]', true)), "FailedGetMetrics",
                     "no CPU usage of the 1 pod"),
    "absurd": (lambda true, _: (200, re.sub(r'"[0-9.e+-]+"\]', '"1e300"]', true)), "FailedGetMetrics",
               "1e.300 cores in use in pod .*cannot be"),
    "no latency": (without_latency, "LatencyMissing", "no latency series"),
    "slow": (slow, "FailedGetMetrics", "tim(e|ed) ?out"),
}


def is_in_trouble(namespace, reason, message):
    said = condition_is(namespace, "ScalingActive", "False", reason)
    return said and re.search(message, said["message"], re.I) and condition_is(
        namespace, "Ready", "False", reason)


def test_answers_of_prometheus_that_are_none_change_nothing(namespace):
    deploy_function(namespace)
    with Prometheus() as prometheus, Controller("rubbish", *QUICK, prometheus=prometheus.url):
        apply(STEADY, namespace)
        ready(namespace)
        for name, (answer, reason, message) in TROUBLES.items():
            audit = Audit()
            prometheus.spoil = answer
            wait(f"it says what is wrong: {name}", lambda: is_in_trouble(namespace, reason, message), 15)
            if answer is slow:
                break
            assert set(audit.writes(namespace)) <= NOT_THE_TARGET, name
            prometheus.spoil = None
            ready(namespace, 15)
        # What would make it grow if only it could see.
        with Load(function_url(namespace, "/sentiment?n=5000"), "20@60s"):
            time.sleep(6)
            assert set(audit.writes(namespace)) <= NOT_THE_TARGET
            prometheus.spoil = None
            wait("it grows", lambda: asked_of_pods(namespace)[0] == "400m", 40)


class Constant:
    """The first answer to each query, for ever."""

    def __init__(self):
        self.first = {}

    def __call__(self, true, asked):
        return 200, self.first.setdefault(re.sub(r"time=[^&]*", "", asked), true)


def tenfold(true, asked):
    """Requests take ten times as long as they do."""
    return 200, re.sub(r'"le":"([0-9.e+-]+)"', lambda le: f'"le":"{float(le[1]) * 10:g}"', true)


LIES = {
    "ten times the latency": tenfold,
    "a tenth of the CPU": lambda true, asked: (200, true if "bucket" in asked else re.sub(
        r'"([0-9.e+-]+)"\]', lambda value: f'"{float(value[1]) / 10:g}"]', true)),
    "less than nothing": lambda true, asked: (200, re.sub(r'"([0-9])', r'"-\1', true)),
    "more than there is": lambda true, asked: (200, re.sub(r'"[0-9.e+-]+"\]', '"1e300"]', true)),
    "always the same": Constant(),
}


def test_lies_of_prometheus_harm_nobody(namespace):
    """A learned policy decides. Whatever it is told, its bounds hold, no pod is restarted, and with the truth all is
    well again."""
    deploy_function(namespace)
    with Prometheus() as prometheus, Controller("lies", *QUICK, prometheus=prometheus.url), \
            Load(function_url(namespace), "8@600s"):
        apply(EXAMPLE.replace("name: threshold", "name: ppo"), namespace)
        ready(namespace)
        for name, lie in LIES.items():
            prometheus.spoil = lie
            for _ in range(8):
                time.sleep(1)
                assert 1 <= replicas(namespace) <= 4, name
                assert all(100 <= int(cpu[:-1]) <= 400 for cpu in asked_of_pods(namespace)), name
            prometheus.spoil = None
            ready(namespace, 30)
        assert restarts(namespace) == 0
        wait("ppo decides", lambda: condition_is(namespace, "FallbackActive", "False"), 30)
        wait("by what is true", lambda: 0 < mpa(namespace)["status"]["lastDecision"]["observation"].get(
            "cpuUsageMilli", 0) < 1000, 30)


def test_prometheus_that_is_gone_changes_nothing(namespace):
    deploy_function(namespace)
    with Controller("gone", *QUICK):
        apply(STEADY, namespace)
        ready(namespace)
        audit = Audit()
        cluster("stop", "prometheus")
        try:
            wait("it says what is wrong", lambda: is_in_trouble(
                namespace, "FailedGetMetrics", "connect to 127.0.0.1"), 15)
            assert set(audit.writes(namespace)) <= NOT_THE_TARGET
        finally:
            cluster("start", "prometheus")
        ready(namespace)


# --- the target ---------------------------------------------------------------------------------------
def test_a_resize_beyond_the_node_goes_to_replicas(namespace):
    deploy_function(namespace)
    huge = EXAMPLE.replace("cpu: 100m", "cpu: \"60\"").replace("cpu: 400m", "cpu: \"64\"")
    with Controller("huge", *QUICK), Load(function_url(namespace, "/sentiment?n=5000"), "20@90s"):
        apply(huge, namespace)
        wait("it says that the node is too small", lambda: condition_is(
            namespace, "ResizePending", "True", "Infeasible"), 30)
        wait("pods are to have what they have", lambda: set(asked_of_pods(namespace)) == {"200m"}, 20)
        wait("replicas grow instead", lambda: replicas(namespace) > 1, 30)
        assert set(asked_of_pods(namespace)) == {"200m"}
        audit = Audit()
        time.sleep(5)
        assert ("patch", "pods/resize") not in audit.writes(namespace)
        assert set(asked_of_pods(namespace)) == {"200m"} == {f"{c}m" for c in cpu_requests(namespace)}
        assert restarts(namespace) == 0
    assert [r for r, _ in events(namespace)].count("ResizeInfeasible") == 1


def test_a_target_that_comes_late_is_found(namespace):
    with Controller("late", *QUICK):
        apply(EXAMPLE, namespace)
        said = wait("it says that the target is missing", lambda: condition_is(
            namespace, "AbleToScale", "False", "FailedGetScale"), 20)
        assert f"Deployment {namespace}/primes does not exist" in said["message"]
        assert condition_is(namespace, "Ready", "False", "FailedGetScale")
        deploy_function(namespace)
        wait("the target is found", lambda: condition_is(namespace, "AbleToScale", "True"), 10)
        ready(namespace)


def test_a_target_that_cannot_be_scaled_is_refused(namespace):
    audit = Audit()
    with Controller("daemon", *QUICK):
        apply(EXAMPLE.replace("kind: Deployment", "kind: DaemonSet"), namespace)
        said = wait("it says so", lambda: condition_is(
            namespace, "ConfigUnsupported", "True", "UnsupportedTarget"), 20)
        assert "DaemonSet" in said["message"]
        assert condition_is(namespace, "Ready", "False", "UnsupportedTarget")
    assert set(audit.writes(namespace)) <= NOT_THE_TARGET
