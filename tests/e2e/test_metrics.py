"""What the controller tells about itself: /metrics, /healthz, /readyz."""
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness import (Controller, EXAMPLE, KUBECONFIG, Load, apply, condition_is, deploy_function,
                     function_url, kubectl, mpa, replicas, wait)

PORT = 18080
LISTEN = f"--listen=127.0.0.1:{PORT}"
SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(?:\{(.*)\})? ([^ ]+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def page(path, port=PORT, method="GET", bearer=None):
    """Status, headers and text; status 0 while nothing listens."""
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read().decode()
    except OSError:
        return 0, {}, ""


class Metrics(dict):
    """A scrape: (name, frozenset of labels) → value."""

    def __init__(self, port=PORT):
        super().__init__()
        status, headers, self.text = page("/metrics", port)
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        for line in self.text.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in self, f"told twice: {line}"
            self[key] = float(value)

    def of(self, name, /, **labels):
        return self.get((f"faasrl_mpa_{name}", frozenset(labels.items())))

    def sum(self, name, /, **labels):
        return sum(value for (found, having), value in self.items()
                   if found == f"faasrl_mpa_{name}" and set(labels.items()) <= having)


def check_by_promtool(text):
    """Prometheus' own judgement of names, units, types and form."""
    assert shutil.which("promtool"), "promtool is in Debian's package prometheus"
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and done.stdout == "", done.stdout


def api_server_port():
    config = json.loads(kubectl("config", "view", "--raw", "-o", "json",
                                f"--kubeconfig={KUBECONFIG}").stdout)
    return int(config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])


class Bridge:
    """A port of this machine on which nobody answers until open() lets through to the API server."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))  # bound but not listening: refused
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        self.to = ("127.0.0.1", api_server_port())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.close()

    def open(self):
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.to)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_ready_when_synced_and_alive_before():
    with Bridge() as bridge:
        controller = Controller("unready", LISTEN, server=bridge.url)
        controller.log_file.unlink(missing_ok=True)
        controller.launch()
        try:
            wait("it listens", lambda: controller.alive() and page("/healthz")[0] == 200, 20)
            wait("it says why it is not ready", lambda: "connect to" in page("/readyz")[2])
            status, _, text = page("/readyz")
            assert status == 503 and text.startswith("not synced: multidimpodautoscalers: ")
            metrics = Metrics()
            assert metrics.of("leader") == 0 and metrics.of("mpas") == 0
            assert metrics.of("kube_requests_total", method="GET", code="none") > 0
            wait("errors of every watch are counted",
                 lambda: all(Metrics().of("watch_errors_total", resource=r)
                             for r in ("pods", "replicasets", "multidimpodautoscalers")))
            check_by_promtool(Metrics().text)

            bridge.open()
            assert wait("it is ready", lambda: page("/readyz")[0] == 200, 60)
            assert page("/readyz")[2] == "ok\n"
            wait("it leads", lambda: Metrics().of("leader") == 1, 60)
        finally:
            controller.stop()
        assert page("/healthz")[0] == 0


def test_only_what_is_there_to_read():
    with Controller("pages", LISTEN):
        assert page("/metrics/")[0] == page("/debug")[0] == page("/index.html")[0] == 404
        status, headers, _ = page("/metrics", method="POST")
        assert status == 405 and headers["Allow"] == "GET, HEAD"
        status, headers, text = page("/metrics", method="HEAD")
        assert status == 200 and text == "" and headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"

        second = Controller("taken", LISTEN).launch()
        assert second.process.wait(20) == 1, "a port that is taken is told, and ends the program"
        assert f"--listen: cannot listen on 127.0.0.1:{PORT}: Address already in use" in second.log()


def test_standby_is_ready_and_tells_no_mpa():
    with Controller("leads", LISTEN):
        standby = Controller("waits", f"--listen=127.0.0.1:{PORT + 1}")
        standby.log_file.unlink(missing_ok=True)
        standby.launch()
        wait("the standby is ready", lambda: page("/readyz", PORT + 1)[0] == 200, 20)
        assert Metrics(PORT + 1).of("leader") == 0 and Metrics().of("leader") == 1
        assert not [name for name, _ in Metrics(PORT + 1) if "_mpa_mpa_" in name]
        standby.stop()


@pytest.mark.usefixtures("real_pods")
def test_figures_agree_with_the_api_server(namespace):
    deploy_function(namespace, replicas=2)
    apply(EXAMPLE.replace("minReplicas: 1", "minReplicas: 2"), namespace)
    this = {"namespace": namespace, "name": "primes"}
    with Controller("scraped", LISTEN) as controller, Load(function_url(namespace), "5@120s"):
        wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), 40)
        wait("latency is told", lambda: Metrics().of("mpa_latency_seconds", **this), 60)
        metrics = Metrics()
        check_by_promtool(metrics.text)
        assert metrics.of("leader") == 1
        assert metrics.of("build_info", version="0.1.0") == 1
        assert metrics.of("mpas") == len(json.loads(
            kubectl("get", "mpa", "-A", "-o", "json").stdout)["items"])
        assert metrics.of("mpas_by_condition", condition="Ready", status="True") >= 1
        assert metrics.of("pods_cached") >= 2 and metrics.of("pod_cache_bytes") > 0
        assert metrics.of("mpa_ready", **this) == 1
        assert metrics.of("mpa_latency_goal_seconds", **this) == 0.25
        assert 0 < metrics.of("mpa_latency_seconds", **this) < 60

        def agree():
            """In one moment of which both tell."""
            told, status = Metrics(), mpa(namespace)["status"]
            target = status["recommendation"]["containerRecommendations"][0]["target"]["cpu"]
            return (told.of("mpa_current_replicas", **this) == status["currentReplicas"]
                    and told.of("mpa_desired_replicas", **this) == status["desiredReplicas"]
                    and told.of("mpa_cpu_request_cores", container="function", **this)
                    == int(target.removesuffix("m")) / 1000)
        wait("replicas and CPU agree", agree, 60)

        # Every write that was seen is counted, and the time of a pass.
        kubectl("patch", "mpa", "primes", "-n", namespace, "--type=merge", "-p",
                '{"spec": {"constraints": {"global": {"minReplicas": 3}}}}')
        wait("there are three", lambda: replicas(namespace) == 3, 40)
        wait("the metrics know", lambda: Metrics().of("mpa_current_replicas", **this) == 3, 40)
        metrics = Metrics()
        assert metrics.of("rescales_total", result="succeeded") >= 1
        assert metrics.of("rescales_total", result="failed") == 0
        assert metrics.of("status_writes_total", result="succeeded") >= 2
        assert metrics.sum("decisions_total") > 0 and metrics.of("pass_duration_seconds_count") > 0
        assert metrics.sum("kube_requests_total", method="PATCH", code="200") >= 3
        for metric in ("latency", "cpu", "throttled", "memory"):
            assert metrics.of("prometheus_queries_total", metric=metric, result="succeeded") > 0
        assert metrics.of("prometheus_query_duration_seconds_count") \
            == metrics.sum("prometheus_queries_total")
        assert abs(metrics.of("last_pass_timestamp_seconds") - time.time()) < 10
        resident = metrics[("process_resident_memory_bytes", frozenset())]
        assert abs(resident / 2**20 - controller.memory_mib()) < 4
        assert metrics.of("metrics_dropped_total") == 0

        kubectl("delete", "mpa", "primes", "-n", namespace)
        wait("its series are gone", lambda: not [
            labels for name, labels in Metrics() if ("namespace", namespace) in labels], 20)


def test_series_of_mpas_can_be_left_out(namespace):
    apply(EXAMPLE, namespace)  # its target does not exist, which is a state like others
    with Controller("lean", LISTEN, "--per-mpa-metrics=false"):
        wait("the MPA is seen", lambda: Metrics().of(
            "mpas_by_condition", condition="AbleToScale", status="False"), 40)
        assert not [name for name, _ in Metrics() if "_mpa_mpa_" in name]
    with Controller("whole", LISTEN):
        wait("the MPA is told", lambda: Metrics().of(
            "mpa_ready", namespace=namespace, name="primes") == 0, 40)
        assert Metrics().of("mpa_current_replicas", namespace=namespace, name="primes") is None
