"""Knative's Services in tests. The cluster has no ingress: a Revision is asked at the Kubernetes Service that Knative
makes for it, whose address leads to the activator or to the pods, whichever Knative has chosen."""
import copy
import http.client
import json
import time

import yaml

import harness
from harness import Load, ROOT, get, kubectl, listing, wait

EXAMPLE = (ROOT / "deploy/examples/knative.yaml").read_text()
SERVICE, AUTOSCALER = yaml.safe_load_all(EXAMPLE)
IN_ITS_PLACE = yaml.safe_load((ROOT / "deploy/examples/knative-own.yaml").read_text())
# The shortest window that Knative takes: a pod without requests is gone within half a minute.
QUICK_TO_ZERO = {"autoscaling.knative.dev/window": "6s"}


def make_service(namespace, autoscaling=(), labels=(), traffic=None, cpu=None):
    """The example's Service, or a new Revision of it with other labels; the Revision's name, once it is ready."""
    service = copy.deepcopy(SERVICE)
    if cpu:
        for values in service["spec"]["template"]["spec"]["containers"][0]["resources"].values():
            values["cpu"] = cpu
    service["spec"]["template"]["metadata"]["annotations"].update(autoscaling)
    service["spec"]["template"]["metadata"]["labels"] = dict(labels)
    if traffic:
        service["spec"]["traffic"] = traffic
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(service))
    return wait("the Revision is ready", lambda: ready_revision(namespace), 90)


def ready_revision(namespace):
    service = get("services.serving.knative.dev", "primes", namespace)
    status = service.get("status", {})
    newest = status.get("latestCreatedRevisionName")
    # Of the Configuration it may still tell what was before.
    current = status.get("observedGeneration") == service["metadata"]["generation"] and any(
        c["type"] == "ConfigurationsReady" and c["status"] == "True" for c in status.get("conditions", []))
    return newest if current and newest == status.get("latestReadyRevisionName") else None


def traffic_of(namespace):
    """Per cent of the traffic by Revision."""
    status = get("services.serving.knative.dev", "primes", namespace).get("status", {})
    return {part["revisionName"]: part.get("percent", 0) for part in status.get("traffic", [])}


def autoscaler_of(namespace, revision):
    return get("podautoscaler", revision, namespace)


def pods_of(namespace, revision):
    return [p for p in listing("pods", namespace, "-l", f"serving.knative.dev/revision={revision}")
            if "deletionTimestamp" not in p["metadata"]]


def proxies_of(pod_spec):
    return [c["resources"] for c in pod_spec["containers"] if c["name"] == "queue-proxy"]


def check_left_alone(audit, namespace, revision):
    """Each queue-proxy has what Knative gave it, and pods were resized, never ended or written otherwise."""
    made = proxies_of(get("deployment", f"{revision}-deployment", namespace)["spec"]["template"]["spec"])
    assert len(made) == 1
    for pod in pods_of(namespace, revision):
        assert proxies_of(pod["spec"]) == made
    assert {w for w in audit.writes(namespace) if w[1].startswith("pods")} <= {("patch", "pods/resize")}


def address_of(namespace, revision):
    return get("service", revision, namespace)["spec"]["clusterIP"]


def host_of(namespace, revision):
    """By which the activator knows whom a request is for."""
    return f"{revision}.{namespace}.svc.cluster.local"


def ask(namespace, revision, path="/primes?n=1000", timeout=60):
    """The HTTP status, and how long it took in seconds."""
    connection = http.client.HTTPConnection(address_of(namespace, revision), timeout=timeout)
    began = time.monotonic()
    try:
        connection.request("GET", path, headers={"Host": host_of(namespace, revision)})
        return connection.getresponse().status, time.monotonic() - began
    finally:
        connection.close()


def call_of(cpu_ms, namespace, revision):
    return harness.call_of(cpu_ms, f"http://{address_of(namespace, revision)}", host_of(namespace, revision))


def load(namespace, revision, trace, path="/sentiment?n=1500"):
    return Load(f"http://{address_of(namespace, revision)}{path}", trace, "--host", host_of(namespace, revision))
