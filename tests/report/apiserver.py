"""An API server as small as kubectl mpa needs it: MPAs and events, lists in pages, a watch, a merge patch."""
import copy
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MPAS = "/apis/autoscaling.faasrl.io/v1alpha1"
PAGE = 2  # objects, so that every list of some length has several pages


def mpa(name, namespace="default", replicas=2, cpu="400m", latency="118ms", rate=31.5, used=0.62, **metadata):
    return {
        "apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-31T10:00:00Z",
                     "managedFields": [{"manager": "kubectl"}], **metadata},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                 "goals": {"latency": {"percentile": 99, "target": "250ms"}},
                 "constraints": {"global": {"minReplicas": 1, "maxReplicas": 4}},
                 "policy": {"updateMode": "Auto"}, "recommenders": [{"name": "threshold"}]},
        "status": {"currentReplicas": replicas, "desiredReplicas": replicas, "currentLatency": latency,
                   "recommendation": {"containerRecommendations": [
                       {"containerName": "function", "target": {"cpu": cpu}}]},
                   "lastDecision": {"time": "2026-01-31T10:05:00Z", "action": "Rescale",
                                    "reason": f"p99 of {name} over goal: replicas 1 → {replicas}",
                                    "observation": {"requestsPerSecond": rate, "cpuUtilization": used,
                                                    "latencyMs": 118}},
                   "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "followed",
                                   "lastTransitionTime": "2026-01-31T10:01:00Z"}]},
    }


def event(name, time, reason, message, count=1):
    return {"metadata": {"name": f"{name}.{time}"}, "involvedObject": {"kind": "MultidimPodAutoscaler", "name": name},
            "lastTimestamp": time, "reason": reason, "message": message, "count": count}


class Server:
    """Serves until it is closed. mpas and events may be changed meanwhile, with announce()."""

    def __init__(self, mpas=(), events=(), installed=True, namespaces=("default", "other")):
        self.mpas = {(m["metadata"]["namespace"], m["metadata"]["name"]): m for m in mpas}
        self.events, self.installed, self.namespaces = list(events), installed, namespaces
        self.seen = []  # (method, path, Authorization)
        self.changed = threading.Condition()
        self.news = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.get(self)

            def do_PATCH(self):
                outer.patch(self)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.changed:
            self.news.append(None)
            self.changed.notify_all()
        self.http.shutdown()

    def announce(self, mpa):
        with self.changed:
            self.mpas[mpa["metadata"]["namespace"], mpa["metadata"]["name"]] = mpa
            mpa["metadata"]["resourceVersion"] = str(10 + len(self.news))
            self.news.append({"type": "MODIFIED", "object": mpa})
            self.changed.notify_all()

    @staticmethod
    def answer(request, status, body):
        data = json.dumps(body).encode() if not isinstance(body, str) else body.encode()
        request.send_response(status)
        request.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def missing(self, request, name):
        self.answer(request, 404, {
            "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": f'multidimpodautoscalers.autoscaling.faasrl.io "{name}" not found',
            "details": {"name": name, "kind": "multidimpodautoscalers"}})

    def get(self, request):
        url = urllib.parse.urlparse(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.seen.append(("GET", request.path, request.headers.get("Authorization")))
        parts = url.path.strip("/").split("/")
        if url.path == "/api/v1/namespaces":
            return self.page(request, query, [{"metadata": {"name": n}} for n in self.namespaces])
        if url.path.endswith("/events"):
            wanted = query["fieldSelector"].split("involvedObject.name=")[1]
            return self.page(request, query, [e for e in self.events if e["involvedObject"]["name"] == wanted])
        if not self.installed or not url.path.startswith(MPAS):
            return self.answer(request, 404, "404 page not found\n")
        namespace = parts[4] if len(parts) > 4 else None
        if len(parts) == 7:
            found = self.mpas.get((namespace, parts[6]))
            return self.answer(request, 200, found) if found else self.missing(request, parts[6])
        items = [m for (ns, _), m in sorted(self.mpas.items()) if namespace in (None, ns)]
        if "labelSelector" in query:
            key, value = query["labelSelector"].split("=")
            items = [m for m in items if m["metadata"].get("labels", {}).get(key) == value]
        if query.get("watch") in ("1", "true"):
            return self.watch(request)
        return self.page(request, query, items)

    def page(self, request, query, items):
        begin = int(query.get("continue", "0"))
        metadata = {"resourceVersion": "1"}
        if begin + PAGE < len(items):
            metadata["continue"] = str(begin + PAGE)
        items = copy.deepcopy(items[begin:begin + PAGE])
        for item in items:  # as of a real list
            item.pop("kind", None), item.pop("apiVersion", None)
        self.answer(request, 200, {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})

    def watch(self, request):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        at = 0
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.news) > at)
                news, at = self.news[at:], len(self.news)
            for one in news:
                if one is None:
                    return
                line = json.dumps(one).encode() + b"\n"
                request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                request.wfile.flush()

    def patch(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        path = urllib.parse.urlparse(request.path).path
        parts = path.strip("/").split("/")
        self.seen.append(("PATCH", path, request.headers.get("Authorization")))
        found = self.mpas.get((parts[4], parts[6]))
        if not found:
            return self.missing(request, parts[6])
        assert request.headers["Content-Type"] == "application/merge-patch+json"
        annotations = found["metadata"].setdefault("annotations", {})
        for key, value in body["metadata"]["annotations"].items():
            annotations.pop(key, None) if value is None else annotations.update({key: value})
        self.answer(request, 200, found)
