"""One size: each party alone with as many objects, on the same Deployments and the same load."""
import contextlib
import json
import time

import objects
import parties
from parties import SCRAPE_S
from place import harness

STEPPED_PART = 100  # one function in so many gets more load, to see when it is acted on
STEP_FACTOR = 1.6
STEP_WAIT_S = 120
WINDOW_S = 60  # of the queries: rates are whole after this


class Interval:
    """What a party used between two moments, by the minute."""

    def __init__(self, party, seconds):
        before, cpu_s, began = party.exposed(), party.cpu_s(), time.monotonic()
        peak = 0.0
        while time.monotonic() < began + seconds:
            time.sleep(min(1, seconds))
            party.alive()
            peak = max(peak, party.memory_mib()[0])
        self.seconds = time.monotonic() - began
        self.cpu_s, self.before, self.after = party.cpu_s() - cpu_s, before, party.exposed()
        self.memory = peak, party.memory_mib()[1]

    def delta(self, name):
        return self.after.get(name, 0) - self.before.get(name, 0)

    def figures(self, decisions, requests):
        return {"seconds": self.seconds, "cpu_s_per_min": self.cpu_s * 60 / self.seconds, "rss_mib": self.memory[0],
                "rss_most_mib": self.memory[1], "decisions_per_min": decisions * 60 / self.seconds,
                "cpu_ms_per_decision": 1000 * self.cpu_s / decisions if decisions else None,
                "kube_requests_per_min": self.delta(requests) * 60 / self.seconds if requests in self.after else None}


def mean_s(interval, histogram):
    count = interval.delta(f"{histogram}_count")
    return interval.delta(f"{histogram}_sum") / count if count else None


# --- from a metric to the patch --------------------------------------------------------------------
def moment(text):
    whole, _, part = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(f"0.{part or 0}")


def acted_on(entry):
    """Of which function a write is, that changes its replicas or its CPU; None: it is another one."""
    where = entry.get("objectRef", {})
    what = where.get("resource"), where.get("subresource")
    if entry["verb"] not in ("patch", "update") or entry.get("responseStatus", {}).get("code") != 200:
        return None
    if what == ("deployments", "scale"):
        return where["name"]
    return where["name"].rsplit("-", 2)[0] if what == ("pods", "resize") else None


def reaction(size, account):
    """Seconds from the change of a figure until the first write for that function, of those that were acted on."""
    apps = [objects.name_of(i) for i in range(0, size, max(1, size // max(20, size // STEPPED_PART)))]
    audit = harness.Audit(account)
    began = parties.step(apps, STEP_FACTOR)
    first, deadline = {}, time.monotonic() + STEP_WAIT_S
    while len(first) < len(apps) and time.monotonic() < deadline:
        time.sleep(5)
        first = {}
        for entry in audit.entries(objects.NAMESPACE):
            app = acted_on(entry)
            if app in apps:
                first.setdefault(app, moment(entry["requestReceivedTimestamp"]) - began)
    parties.step(apps, 1)
    took = sorted(first.values())
    return {"stepped": len(apps), "acted": len(took), "p50_s": quantile(took, 0.5), "p99_s": quantile(took, 0.99)}


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None


# --- the parties -----------------------------------------------------------------------------------
def ours(size, seconds):
    objects.make("mpas", map(objects.name_of, range(size)))
    harness.kubectl("delete", "lease", "--all", "-n", "faasrl-mpa")
    try:
        with parties.ours() as party:
            passed = "faasrl_mpa_last_pass_timestamp_seconds"
            harness.wait("a pass", lambda: party.exposed().get(passed), 180, every=0.2)
            first_s = party.exposed()[passed] - party.began
            # At the rate that writes are limited to, or that the API server of a busy machine takes.
            harness.wait("each MPA has its first status",
                         lambda: party.exposed().get("faasrl_mpa_status_writes_total", 0) >= size, size / 5 + 120, every=2)
            time.sleep(SCRAPE_S)
            interval = Interval(party, seconds)
            figures = our_figures(size, interval)
            return {**figures, "start_to_first_decision_s": first_s, "reaction": reaction(size, harness.SERVICE_ACCOUNT),
                    "rss_most_mib": party.memory_mib()[1], "descriptors": party.descriptors()}
    finally:
        objects.clear("mpas")
        objects.reset_replicas()


def our_figures(size, interval):
    passes = interval.delta("faasrl_mpa_pass_duration_seconds_count")
    found = interval.figures(passes * size, "faasrl_mpa_kube_requests_total")
    return {**found, "passes": passes, "pass_s": mean_s(interval, "faasrl_mpa_pass_duration_seconds"),
            "pass_cpu_s": interval.cpu_s / passes if passes else None,
            "query_s": mean_s(interval, "faasrl_mpa_prometheus_query_duration_seconds"),
            "queries_per_min": interval.delta("faasrl_mpa_prometheus_queries_total") * 60 / interval.seconds,
            "queries_per_pass": interval.delta("faasrl_mpa_prometheus_queries_total") / passes if passes else None,
            "rescales": interval.delta("faasrl_mpa_rescales_total"), "resizes": interval.delta("faasrl_mpa_resizes_total"),
            "status_writes_per_min": interval.delta("faasrl_mpa_status_writes_total") * 60 / interval.seconds,
            "pods_cached": interval.after.get("faasrl_mpa_pods_cached"),
            "pod_cache_mib": interval.after.get("faasrl_mpa_pod_cache_bytes", 0) / 2**20,
            "dashboard_mib": interval.after.get("faasrl_mpa_dashboard_bytes", 0) / 2**20}


RECONCILED = "horizontal_pod_autoscaler_controller_reconciliations_total"


def hpa(size, seconds):
    objects.make("hpas", map(objects.name_of, range(size)))
    try:
        with parties.metrics_api(), parties.hpa_controller() as party:
            harness.wait("the first pass of the HPA controller", lambda: party.exposed().get(RECONCILED, 0) >= size, 600,
                         every=1)
            first_s = time.time() - party.began
            interval = Interval(party, seconds)
            found = interval.figures(interval.delta(RECONCILED), "rest_client_requests_total")
            return {**found, "start_to_first_decision_s": first_s, "reaction": reaction(size, "admin"),
                    "rss_most_mib": party.memory_mib()[1],
                    "pass_s": size / interval.delta(RECONCILED) * interval.seconds if interval.delta(RECONCILED) else None}
    finally:
        objects.clear("hpas")
        objects.reset_replicas()


def vpa(size, seconds):
    parties.install_vpa()
    objects.make("vpas", map(objects.name_of, range(size)))
    try:
        with parties.metrics_api(), parties.vpa_recommender() as party:
            harness.wait("the first loop of the VPA recommender", lambda: has_recommended(size, party), 900, every=5)
            first_s = time.time() - party.began
            interval = Interval(party, max(seconds, 60))
            found = interval.figures(interval.seconds / 60 * size, "rest_client_requests_total")
            return {**found, "start_to_first_decision_s": first_s, "rss_most_mib": party.memory_mib()[1]}
    finally:
        objects.clear("vpas")
        objects.clear("checkpoints")


def has_recommended(size, party):
    """The last of them, in whatever order, has what it is there for."""
    party.alive()
    done = sum("recommendation" in item.get("status", {}) for page in objects.pages("vpas") for item in page)
    return done >= size * 0.99


PARTIES = {"ours": ours, "hpa": hpa, "vpa": vpa}


# --- all of them -----------------------------------------------------------------------------------
def wait_for_pods(size):
    harness.wait(f"{objects.PODS * size} pods run", lambda: int(parties.read(f"{parties.FEED}/pods")) >= objects.PODS * size,
                 3600, every=2)


def one_size(size, who, seconds, keep):
    """Measures each of them and hands over what was found, as soon as it is."""
    objects.fleet(size)
    with contextlib.ExitStack() as stack:
        stack.enter_context(parties.feed())
        stack.enter_context(parties.prometheus())
        wait_for_pods(size)
        time.sleep(WINDOW_S + 2 * SCRAPE_S)
        for name in who:
            began = time.monotonic()
            found = PARTIES[name](size, seconds)
            keep(name, found)
            print(f"{size} {name} ({time.monotonic() - began:.0f} s): {json.dumps(found)}", flush=True)
            wait_for_pods(size)
