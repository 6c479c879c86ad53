"""A controller that runs, and what it talks to: an API server and a Prometheus that know one function. They
answer what is asked in the shapes of the real ones, and no more: what a controller does is for tests/e2e."""
import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

ROOT = Path(__file__).resolve().parents[2]
CONTROLLER = ROOT / os.environ.get("CONTROLLER", "build/faasrl-mpa")
MPACTL = ROOT / os.environ.get("MPACTL", "build/mpactl")
NAMESPACE, NAME, POD, CONTAINER = "shop", "web", "web-1-a", "function"


def meta(name, uid, **more):
    return {"name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", **more}


def owner(kind, name, uid):
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}]}


CPU = {"requests": {"cpu": "200m", "memory": "64Mi"}}
TEMPLATE = {"spec": {"containers": [{"name": CONTAINER, "resources": CPU}]}}
SELECTOR = {"matchLabels": {"app": NAME}}
OBJECTS = {
    "multidimpodautoscalers": [{
        "apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler", "metadata": meta(NAME, "m"),
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
                 "goals": {"latency": {"percentile": 99, "target": "250ms"}},
                 "constraints": {"global": {"minReplicas": 1, "maxReplicas": 4}, "container": [
                     {"name": "*", "requests": {"minAllowed": {"cpu": "100m"}, "maxAllowed": {"cpu": "400m"}}}]},
                 "policy": {"updateMode": "Auto"}, "recommenders": [{"name": "ppo"}]}}],
    "deployments": [{"metadata": meta(NAME, "d"), "spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE},
                     "status": {"replicas": 1, "readyReplicas": 1}}],
    "replicasets": [{"metadata": meta(f"{NAME}-1", "r", **owner("Deployment", NAME, "d")),
                     "spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}, "status": {"replicas": 1}}],
    "pods": [{"metadata": meta(POD, "p", labels={"app": NAME}, **owner("ReplicaSet", f"{NAME}-1", "r")),
              "spec": {"nodeName": "n", "containers": [{"name": CONTAINER, "resources": CPU}]},
              "status": {"phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z",
                         "conditions": [{"type": "Ready", "status": "True",
                                         "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                         "containerStatuses": [{"name": CONTAINER, "ready": True, "started": True, "restartCount": 0,
                                                "resources": CPU,
                                                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()


class ApiServer(Handler):
    broken = threading.Event()  # set once a watch has failed, so that this can be seen, too

    def do_GET(self):
        url = urlsplit(self.path)
        resource = url.path.rsplit("/", 1)[-1]
        if resource == "statefulsets" and not self.broken.is_set():
            self.broken.set()
            self.answer(500, {"kind": "Status", "status": "Failure", "message": "not now", "code": 500})
        elif "watch" in parse_qs(url.query):
            self.hold()
        elif resource in OBJECTS or resource in ("statefulsets", "horizontalpodautoscalers"):
            self.answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": OBJECTS.get(resource, [])})
        else:
            self.answer(404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                              "message": f"{url.path} is not here"})

    def hold(self):
        """A watch in which nothing happens."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.server.ends.wait(60)
        self.close_connection = True

    def write(self):
        self.answer(200, json.loads(self.body() or "{}"))

    do_POST = do_PUT = do_PATCH = write


class Prometheus(Handler):
    def do_GET(self):
        self.result(parse_qs(urlsplit(self.path).query))

    def do_POST(self):
        self.result(parse_qs(self.body()))

    @staticmethod
    def series(query):
        of = {"namespace": NAMESPACE, "pod": POD}
        if "bucket" in query:
            return [({**of, "le": le}, rate) for le, rate in (("0.1", 8), ("0.5", 10), ("+Inf", 10))]
        value = 0.12 if "cpu_usage" in query else 0.01 if "throttled" in query else 3e7
        return [({**of, "container": CONTAINER}, value)]

    def result(self, asked):
        """The same figures at all times."""
        found = self.series(asked["query"][0])
        if "query_range" in self.path:
            start, end, step = (float(asked[k][0]) for k in ("start", "end", "step"))
            times = [start + i * step for i in range(int((end - start) / step) + 1)]
            data = {"resultType": "matrix", "result": [
                {"metric": labels, "values": [[t, str(value)] for t in times]} for labels, value in found]}
        else:
            data = {"resultType": "vector", "result": [
                {"metric": labels, "value": [time.time(), str(value)]} for labels, value in found]}
        self.answer(200, {"status": "success", "data": data})


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """The controller ends while it is being answered."""


class Served:
    def __init__(self, handler):
        self.server = Server(("127.0.0.1", 0), handler)
        self.server.ends = threading.Event()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.ends.set()
        self.server.shutdown()
        self.server.server_close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Controller:
    """`with Controller(tmp_path) as controller: controller.scrape()`."""

    def __init__(self, directory, *flags, api=ApiServer):
        self.directory, self.flags, self.api, self.port = directory, flags, api, free_port()

    def __enter__(self):
        self.parts = [Served(self.api), Served(Prometheus)]
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
                  "clusters": [{"name": "c", "cluster": {"server": self.parts[0].url}}],
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ops"}}]}
        (self.directory / "kubeconfig").write_text(json.dumps(config))
        self.log = open(self.directory / "log", "w+")
        self.process = subprocess.Popen(
            [CONTROLLER, f"--kubeconfig={self.directory}/kubeconfig", f"--prometheus-url={self.parts[1].url}",
             f"--listen=127.0.0.1:{self.port}", "--leader-elect=false", "--interval=1s", "--log-level=debug",
             *self.flags], stdout=self.log, stderr=self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(30)
        for part in self.parts:
            part.stop()
        self.log.close()
        assert code == 0, self.told()

    def told(self):
        return (self.directory / "log").read_text()

    def scrape(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
                return page.read().decode()
        except OSError:
            assert self.process.poll() is None, self.told()
            return ""

    def scrape_until(self, sign, seconds=40):
        end = time.monotonic() + seconds
        while sign not in (text := self.scrape()):
            assert time.monotonic() < end, f"{sign} is not told:\n{text}\n{self.told()[-4000:]}"
            time.sleep(0.2)
        return text
