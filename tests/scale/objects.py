"""Thousands of objects of the API, many requests at a time."""
import copy
import http.client
import json
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import yaml

from place import PKI, PORTS, harness

NAMESPACE = "scale"
PODS = 2
THREADS = 12
PODS_A_NODE = 1000
TRIES = 8
connections = threading.local()

KINDS = {
    "nodes": "/api/v1/nodes",
    "pods": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "deployments": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "mpas": f"/apis/autoscaling.faasrl.io/v1alpha1/namespaces/{NAMESPACE}/multidimpodautoscalers",
    "hpas": f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
    "vpas": f"/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers",
    "checkpoints": f"/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalercheckpoints",
}


def connect():
    context = ssl.create_default_context(cafile=PKI / "ca.crt")
    context.load_cert_chain(PKI / "admin.crt", PKI / "admin.key")
    return http.client.HTTPSConnection("127.0.0.1", PORTS["PORT_API"], context=context, timeout=120)


def ask(method, path, body=None, patch=False):
    """The HTTP status and the answer; a connection that was cut is made anew once."""
    headers = {"Content-Type": "application/merge-patch+json" if patch else "application/json"}
    for last in (False, True):
        if not hasattr(connections, "one"):
            connections.one = connect()
        try:
            connections.one.request(method, path, json.dumps(body) if body else None, headers)
            answer = connections.one.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException):
            del connections.one
            if last:
                raise
    raise AssertionError("not reached")


def insist(method, path, body=None, patch=False, pause=time.sleep):
    """As ask, but not content with "later" or "I failed": asked again, after half a minute in all no more."""
    for i in range(TRIES):
        status, answer = ask(method, path, body, patch)
        if status != 429 and status < 500:
            break
        if i + 1 < TRIES:
            pause(min(10, 0.25 * 2**i))
    return status, answer


def name_of(i):
    return f"fn-{i:05}"


def deployment(name):
    labels = {"app": name}
    container = {"name": "function", "image": "local/function:1", "resources": {
        "requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "400m", "memory": "128Mi"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": PODS, "selector": {"matchLabels": labels}, "revisionHistoryLimit": 0,
        "template": {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0,
                                                              "containers": [container]}}}}


MPA = yaml.safe_load(harness.EXAMPLE)


def mpa(name, of=None):
    """Of the function OF, or that of its own name. Replicas alone: the API server refuses to resize a pod whose kubelet
    does not tell what it has in force."""
    made = copy.deepcopy(MPA)
    made["spec"]["constraints"]["containerControlledResources"] = []
    made["metadata"]["name"], made["spec"]["scaleTargetRef"]["name"] = name, of or name
    return made


def target(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def hpa(name):
    limits = MPA["spec"]["constraints"]["global"]
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": {
        "scaleTargetRef": target(name), "minReplicas": limits["minReplicas"], "maxReplicas": limits["maxReplicas"],
        "behavior": limits["behavior"], "metrics": MPA["spec"]["goals"]["metrics"]}}


def vpa(name):
    return {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name},
            "spec": {"targetRef": target(name), "updatePolicy": {"updateMode": "Off"}}}


def node(name):
    size = {"cpu": "2000", "memory": "4Ti", "pods": str(PODS_A_NODE * 2)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": size, "allocatable": size}}


MAKE = {"nodes": node, "deployments": deployment, "mpas": mpa, "hpas": hpa, "vpas": vpa}


def names(kind):
    found, more = set(), ""
    while True:
        status, page = insist("GET", f"{KINDS[kind]}?limit=2000&continue={more}")
        assert status == 200, page
        found |= {item["metadata"]["name"] for item in page["items"]}
        more = page["metadata"].get("continue")
        if not more:
            return found


def make(kind, wanted):
    """So that there are exactly those."""
    have, wanted = names(kind), set(wanted)

    def one(work):
        method, name = work
        status, answer = (insist("POST", KINDS[kind], MAKE[kind](name)) if method == "POST"
                          else insist("DELETE", f"{KINDS[kind]}/{name}"))
        assert status in (200, 201, 202, 404, 409), answer

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, [("POST", n) for n in sorted(wanted - have)] + [("DELETE", n) for n in have - wanted]))


def namespace():
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    harness.wait("the namespace has its account", lambda: ask(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default")[0] == 200, 60)


def clear(kind):
    while names(kind):
        ask("DELETE", KINDS[kind])
        time.sleep(0.5)


def reset_replicas():
    """What an autoscaler did is undone before the next one's turn."""
    changed = []
    for page in pages("deployments"):
        changed += [d["metadata"]["name"] for d in page if d["spec"]["replicas"] != PODS]

    def one(name):
        status, answer = insist("PATCH", f"{KINDS['deployments']}/{name}", {"spec": {"replicas": PODS}}, True)
        assert status == 200, answer

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, changed))


def pages(kind):
    more = ""
    while True:
        status, page = insist("GET", f"{KINDS[kind]}?limit=2000&continue={more}")
        assert status == 200, page
        yield page["items"]
        more = page["metadata"].get("continue")
        if not more:
            return


def fleet(size):
    """Functions 0 to size - 1 with their pods' nodes."""
    namespace()
    make("nodes", {f"scale-{i}" for i in range(-(-size * PODS // PODS_A_NODE) + 1)} | {
        n for n in names("nodes") if n.startswith("kwok-")})
    make("deployments", (name_of(i) for i in range(size)))
