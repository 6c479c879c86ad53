"""What OpenWhisk does on Kubernetes, without OpenWhisk: pods as its Kubernetes container factory makes them (by the
sources of 2.0.0), an invoker's side of /init and /run, and activations told to a stand-in of user-events. The
containers are the test functions."""
import itertools
import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import apply, get, kubectl

MEMORY_MB = 128
CPU_SCALING = {"millicpus": 100, "memory": 128, "max-millicpus": 4000}
# What can be a label's value; Kubernetes refuses others, and then the pod has none of the two.
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")


def pod_name(unique_name, number, count, prefix, suffix):
    def kept(text):
        return "".join(c for c in text if c.isalnum() or c == "_")
    head = "".join(c for c in f"wsk{unique_name}{number}" if c.isalnum() or c in "_.-")
    name = f"{head}_{count}_{kept(prefix)}_{kept(suffix)}"
    return name.replace("_", "-").lower()[:63].rstrip("-")


def pod(name, invoker, cpu_scaling=CPU_SCALING):
    amounts = {"memory": f"{MEMORY_MB}Mi"}
    if cpu_scaling:
        share = MEMORY_MB // cpu_scaling["memory"] * cpu_scaling["millicpus"]
        amounts["cpu"] = f"{min(max(share, cpu_scaling['millicpus']), cpu_scaling['max-millicpus'])}m"
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"name": name, "user-action-pod": "true", "invoker": invoker,
                                              "release": "owdev"}},
        "spec": {"restartPolicy": "Always", "containers": [{
            "name": "user-action", "image": "local/function:1",
            "env": [{"name": "__OW_API_HOST", "value": "http://owdev-nginx"}],
            "ports": [{"containerPort": 8080, "name": "action"}],
            "resources": {"requests": amounts, "limits": amounts},
            "securityContext": {"capabilities": {"drop": ["NET_RAW", "NET_ADMIN"]}}}]}}


def send(url, body=None, timeout=30):
    request = urllib.request.Request(url, json.dumps(body or {}).encode(), {"Content-Type": "application/json"},
                                     method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read().decode() or "{}") if body else None
    except urllib.error.HTTPError as error:
        return error.code, None


def start_user_events(namespace):
    """The service's stand-in, scraped as its chart has it; gives its address."""
    apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "owdev-user-events", "labels": {"name": "owdev-user-events"},
                     "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9095"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
            "name": "user-events", "image": "local/function:1", "args": ["--port", "9095"],
            "ports": [{"containerPort": 9095}],
            "resources": {"requests": {"cpu": "50m"}}}]}}), namespace)
    return f"http://{ready_address(namespace, 'owdev-user-events')}:9095"


def ready_address(namespace, name):
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{name}", "-n", namespace)
    return get("pod", name, namespace)["status"]["podIP"]


class Invoker:
    def __init__(self, namespace, number, events, scheduler=False):
        self.namespace, self.number, self.events, self.scheduler = namespace, number, events, scheduler
        self.unique_name = f"owdev-invoker-{number}"
        self.counter = itertools.count(1)

    def make(self, prefix, suffix, **how):
        name = pod_name(self.unique_name, self.number, next(self.counter), prefix, suffix)
        apply(json.dumps(pod(name, f"invoker{self.number}", **how)), self.namespace)
        return name

    def prewarm(self, kind="nodejs:14"):
        made = self.make("prewarm", kind)
        ready_address(self.namespace, made)
        return made

    def start(self, action, **how):
        """A cold start: a pod for NAMESPACE/[PACKAGE/]ACTION, initialised."""
        path, name = action.rsplit("/", 1)
        made = self.make(path if self.scheduler else path.split("/")[0], name, **how)
        return self.initialise(made, action)

    def initialise(self, made, action):
        path, name = action.rsplit("/", 1)
        address = ready_address(self.namespace, made)
        if not self.scheduler and LABEL.match(path) and LABEL.match(name):
            kubectl("label", "pod", made, "-n", self.namespace, f"openwhisk/action={name}",
                    f"openwhisk/namespace={path}")
        status, answer = send(f"http://{address}:8080/init",
                              {"value": {"name": name, "main": "main", "code": "sentiment", "binary": False}})
        assert (status, answer) == (200, {"ok": True})
        return made

    def tell(self, action, seconds, wait=0):
        """Of an activation: what it took, and how long it had waited for a pod."""
        namespace, path = action.split("/", 1)
        query = urllib.parse.urlencode({"namespace": namespace, "initiator": namespace, "action": path,
                                        "seconds": seconds, "wait": wait})
        assert send(f"{self.events}/event?{query}")[0] == 200

    def run(self, address, action, n):
        began = time.monotonic()
        status, _ = send(f"http://{address}:8080/run",
                         {"value": {"n": n}, "namespace": action.split("/")[0], "action_name": f"/{action}"})
        self.tell(action, time.monotonic() - began)
        return status


class Calls:
    """Activations of an action on pods of an invoker, one at a time on each, as OpenWhisk does."""

    def __init__(self, invoker, action, pods, n=5000, pause=0.02):
        self.invoker, self.action, self.n, self.pause = invoker, action, n, pause
        self.addresses = [ready_address(invoker.namespace, p) for p in pods]
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.call, args=(a,), daemon=True) for a in self.addresses]

    def call(self, address):
        while not self.ended.is_set():
            self.invoker.run(address, self.action, self.n)
            time.sleep(self.pause)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=40)


class Waiting:
    """Activations that are only told of, five a second, each after a wait of `wait_s`."""

    def __init__(self, invoker, action, wait_s):
        self.invoker, self.action, self.wait_s = invoker, action, wait_s
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.tell, daemon=True)

    def tell(self):
        while not self.ended.wait(0.2):
            self.invoker.tell(self.action, 0.01, self.wait_s)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        self.thread.join(timeout=40)
