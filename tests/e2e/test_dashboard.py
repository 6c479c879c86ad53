"""The dashboard's interface on a real cluster: who may see it, what it tells, and that nobody can hold it up."""
import contextlib
import http.client
import json
import re
import socket
import threading
import time

import pytest

from harness import (Audit, Controller, EXAMPLE, Load, apply, condition_is, deploy_function, function_url, kubectl,
                     mpa, new_namespace, replicas, token, wait)
from test_metrics import page

PORT = 18090
LISTEN = f"--listen=127.0.0.1:{PORT}"
READS = ("--verb=list", "--resource=multidimpodautoscalers.autoscaling.faasrl.io")
COLUMNS = {"time", "requestsPerSecond", "latencyMs", "goalMs", "replicas", "wantedReplicas", "cpuMilli",
           "wantedCpuMilli", "utilization", "reward"}


def ask(path, bearer):
    """Status and the JSON of the answer."""
    status, headers, text = page(path, PORT, bearer=bearer)
    assert headers["Content-Type"].startswith("application/json") and headers["Cache-Control"] == "no-store"
    return status, json.loads(text)


def told(path, bearer):
    status, body = ask(path, bearer)
    assert status == 200, body
    return body


class Readers:
    """Tokens of three accounts: one that may list MPAs, one that may in a single namespace, one that may not."""

    def __init__(self, namespace):
        for name in ("all", "here", "none"):
            kubectl("create", "serviceaccount", name, "-n", namespace)
        account = f"--serviceaccount={namespace}:"
        self.role = f"dashboard-{namespace}"
        kubectl("create", "clusterrole", self.role, *READS)
        kubectl("create", "clusterrolebinding", self.role, f"--clusterrole={self.role}", f"{account}all")
        kubectl("create", "role", "here", "-n", namespace, *READS)
        kubectl("create", "rolebinding", "here", "-n", namespace, "--role=here", f"{account}here")
        self.all, self.here, self.none = (token(name, namespace).strip() for name in ("all", "here", "none"))

    def clear(self):
        kubectl("delete", "clusterrole,clusterrolebinding", self.role)


@pytest.fixture
def readers(namespace):
    made = Readers(namespace)
    yield made
    made.clear()


class Stream:
    """Events of /api/v1/stream, read in a thread of its own."""

    def __init__(self, bearer, query=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
        self.connection.request("GET", f"/api/v1/stream{query}", headers={"Authorization": f"Bearer {bearer}"})
        self.socket = self.connection.sock  # which the answer takes over
        self.answer = self.connection.getresponse()
        self.status, self.events, self.ended = self.answer.status, [], False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        event = None
        try:
            for line in self.answer:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    event = text[7:]
                elif text.startswith("data: "):
                    self.events.append((event, json.loads(text[6:]), time.monotonic()))
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass
        self.ended = True

    def rows(self, name):
        return [row for kind, data, _ in self.events if kind == "mpas" for row in data["items"] if row["name"] == name]

    def gone(self):
        return [key for kind, data, _ in self.events if kind == "mpas" for key in data["gone"]]

    def close(self):
        """Also where a thread is reading, which closing alone would wait for."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def test_who_may_see_it(namespace, readers):
    apply(EXAMPLE, namespace)
    with Controller("dashboard-who", LISTEN) as controller, new_namespace() as other:
        apply(EXAMPLE, other)
        wait("both are followed", lambda: len(told("/api/v1/mpas", readers.all)["items"]) >= 2, 20)
        for path in ("about", "mpas", "learning", "stream", f"mpas/{namespace}/primes",
                     f"mpas/{namespace}/primes/timeline"):
            status, body = ask(f"/api/v1/{path}", None)
            assert status == 401 and "kubectl create token" in body["error"]
            assert ask(f"/api/v1/{path}", "nonsense")[0] == 401
            status, body = ask(f"/api/v1/{path}", readers.none)
            assert status == 403 and "list multidimpodautoscalers.autoscaling.faasrl.io" in body["error"]
        assert page("/api/v1/mpas", PORT)[1]["WWW-Authenticate"] == "Bearer"

        assert told("/api/v1/about", readers.all)["user"] == f"system:serviceaccount:{namespace}:all"
        both = {row["namespace"] for row in told("/api/v1/mpas", readers.all)["items"]}
        assert {namespace, other} <= both
        assert ask("/api/v1/mpas", readers.here)[0] == 403
        assert ask(f"/api/v1/mpas?namespace={other}", readers.here)[0] == 403
        assert ask(f"/api/v1/mpas/{other}/primes?namespace={namespace}", readers.here)[0] == 403
        assert [row["namespace"] for row in told(f"/api/v1/mpas?namespace={namespace}", readers.here)["items"]] == [
            namespace]
        assert told(f"/api/v1/mpas/{namespace}/primes", readers.here)["name"] == "primes"
        assert ask(f"/api/v1/mpas/{namespace}/nobody", readers.here)[0] == 404

        # A right that is taken away holds for no longer than ten seconds.
        kubectl("delete", "rolebinding", "here", "-n", namespace)
        began = time.monotonic()
        wait("it is noticed", lambda: ask(f"/api/v1/mpas?namespace={namespace}", readers.here)[0] == 403, 15)
        assert time.monotonic() - began < 13

        for secret in (readers.all, readers.here, readers.none, "nonsense"):
            assert secret not in controller.log()


def test_answers_are_remembered(namespace, readers):
    with Controller("dashboard-cache", LISTEN):
        told("/api/v1/about", readers.all)
        audit = Audit()
        began = time.monotonic()
        for _ in range(50):
            told("/api/v1/about", readers.all)
        seconds = time.monotonic() - began
        time.sleep(1)
        reviews = [what for _, what in audit.writes() if what.endswith("reviews")]
        assert len(reviews) <= 2 * (1 + seconds / 10), reviews


def test_the_page_and_what_is_not_there(namespace):
    with Controller("dashboard-page", LISTEN):
        status, headers, text = page("/", PORT)
        assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
        assert text.count("<script") == 1 and namespace not in text
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        for path in ("/api/v1/../../etc/passwd", "/api/v1/mpas/../../metrics", "/..%2f..%2fetc/passwd", "/api/v2/mpas",
                     "/api/v1/mpas/a", "/api/v1/mpas/a/b/c", "/api/v1/mpas/a%2Fb/c/d", "/index.html"):
            assert page(path, PORT, bearer="x")[0] == 404, path
        assert page("/api/v1/mpas", PORT, method="DELETE")[0] == 405
        for query in ("mpas?namespace=A", "mpas?namespace=a%2F..%2Fb", "mpas/a/b/timeline?since=-1",
                      "mpas/a/b/timeline?since=99999999999999999999", "mpas/a/b/timeline?since=1x"):
            status, _, text = page(f"/api/v1/{query}", PORT)
            assert status == 400 and json.loads(text)["error"].split(":")[0] in ("namespace", "since"), query
    with Controller("dashboard-off", LISTEN, "--dashboard=off"):
        assert page("/", PORT)[0] == page("/api/v1/about", PORT)[0] == 404 and page("/healthz", PORT)[0] == 200


@pytest.mark.usefixtures("real_pods")
def test_what_it_tells(namespace, readers):
    deploy_function(namespace)
    with Controller("dashboard-tells", LISTEN):
        stream = Stream(readers.here, f"?namespace={namespace}")
        assert stream.status == 200
        wait("it begins with all rows", lambda: stream.events, 10)
        assert stream.events[0][0] == "mpas" and stream.events[0][1]["items"] == []
        apply(EXAMPLE, namespace)
        wait("the stream has the new one", lambda: stream.rows("primes"), 10)
        wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), 40)
        with Load(function_url(namespace, "/sentiment"), "2@3s,2-30@10s,30@60s", "--call-ms=10"):
            wait("CPU grew or replicas did", lambda: [
                m for kind, data, _ in stream.events if kind == "marks" for m in data["marks"]
                if m["kind"] == "decision"], 60)
            row = wait("latency is known", lambda: (r := told(f"/api/v1/mpas/{namespace}/primes", readers.here))[
                "latencyMs"] and r["requestsPerSecond"] and r, 40)
        assert row["target"] == "Deployment/primes" and row["mode"] == "Auto" and row["goalMs"] == 250
        assert row["recommender"] == row["decidedBy"] and row["health"] in ("ok", "late", "fallback")
        assert 0 < row["utilization"] < 3 and row["replicas"] >= 1
        [container] = row["containers"]
        assert container["name"] == "function" and container["minCpuMilli"] == 100 and container["maxCpuMilli"] == 400
        assert {c["type"] for c in row["conditions"]} == {c["type"] for c in mpa(namespace)["status"]["conditions"]}

        def agrees():
            r, status = told(f"/api/v1/mpas/{namespace}/primes", readers.here), mpa(namespace)["status"]
            cpu = status["recommendation"]["containerRecommendations"][0]["target"]["cpu"]
            return (r["wantedReplicas"] == status["desiredReplicas"] and r["lastDecision"]["reason"] == status[
                "lastDecision"]["reason"] and r["wantedCpuMilli"] == int(cpu.removesuffix("m")))
        wait("it says what status says", agrees, 30)

        line = told(f"/api/v1/mpas/{namespace}/primes/timeline", readers.here)
        points, marks = line["points"], line["marks"]
        assert set(points) == COLUMNS and len({len(column) for column in points.values()}) == 1
        assert len(points["time"]) >= 5 and points["time"] == sorted(points["time"])
        assert abs(line["now"] / 1000 - time.time()) < 10 and points["time"][-1] <= line["now"]
        assert max(p for p in points["requestsPerSecond"] if p is not None) > 5
        grown = next(m for m in marks if m["kind"] == "decision" and m["applied"])
        assert grown["text"] and (grown["toReplicas"] > grown["fromReplicas"]
                                  or grown["toCpuMilli"] != grown["fromCpuMilli"])
        middle = points["time"][2]
        newer = told(f"/api/v1/mpas/{namespace}/primes/timeline?since={middle}", readers.here)
        assert newer["points"]["time"][0] == points["time"][3]

        times = [at for kind, _, at in stream.events if kind == "mpas"]
        assert min(b - a for a, b in zip(times[1:], times[2:])) > 0.5, "at most once a second"
        kubectl("delete", "mpa", "primes", "-n", namespace)
        wait("the stream says that it is gone", lambda: f"{namespace}/primes" in stream.gone(), 10)
        assert ask(f"/api/v1/mpas/{namespace}/primes/timeline", readers.here)[0] == 404
        stream.close()


def given_up(connection):
    """Whether the server has refused what was sent, or closed."""
    connection.settimeout(30)
    try:
        answer = connection.recv(4096)
    except ConnectionResetError:
        return True
    return not answer or re.match(rb"HTTP/1\.[01] [45]\d\d ", answer)


@pytest.mark.usefixtures("real_pods")
def test_nobody_can_hold_it_up(namespace, readers):
    """Slow, silent, malformed and too many: decisions go on, and the next one who asks is answered."""
    deploy_function(namespace)
    with Controller("dashboard-held", LISTEN):
        streams = [Stream(readers.all) for _ in range(32)]
        assert [s.status for s in streams] == [200] * 32
        status, body = ask("/api/v1/stream", readers.all)
        assert status == 503 and "32 streams" in body["error"]

        held = []
        for request in (b"GET /api/v1/mpas HTTP/1.1\r\nX: ", b"\x16\x03\x01\x02\x00\x01\x00", b"", b"GET " + b"/" * 40000,
                        b"GET / HTTP/9.9\r\n\r\n", b"GET /api/v1/mpas HTTP/1.1\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"):
            for _ in range(3):
                held.append(socket.create_connection(("127.0.0.1", PORT)))
                held[-1].sendall(request)
        apply(EXAMPLE.replace("minReplicas: 1", "minReplicas: 3"), namespace)
        wait("decisions go on", lambda: replicas(namespace) == 3, 30)
        assert told("/api/v1/mpas", readers.all)["items"]
        long = {"Authorization": "Bearer " + "a" * 20000}
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
        connection.request("GET", "/api/v1/mpas", headers=long)
        assert connection.getresponse().status in (413, 431)

        streams[0].close()
        last = wait("a place is free", lambda: (s := Stream(readers.all)).status == 200 and s, 10)
        wait("the new one has all rows", lambda: last.rows("primes"), 10)
        for stream in (*streams[1:], last):
            stream.close()
        for connection in held:  # ten seconds are given to a request
            assert given_up(connection)
            connection.close()
