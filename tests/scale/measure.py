"""One size: each party alone with as many objects, on the same Deployments and the same load."""
import contextlib
import json
import time

import judge
import objects
import parties
from judge import POLL_S, SCRAPE_S
from place import harness

WINDOW_S = 60  # of the queries: rates are whole after this


@contextlib.contextmanager
def phase(what):
    """Tells how long each part of a measurement took, for who waits for it."""
    began = time.monotonic()
    yield
    print(f"  {what}: {time.monotonic() - began:.0f} s", flush=True)


class Interval:
    """What a party used between two moments, by the minute, while it is scraped as Prometheus would."""

    def __init__(self, party, seconds):
        before, cpu_s, began = party.exposed(), party.cpu_s(), time.monotonic()
        peak, scrape = 0.0, began + SCRAPE_S
        while time.monotonic() < began + seconds:
            time.sleep(min(1, seconds))
            party.alive()
            peak = max(peak, party.memory_mib()[0])
            if time.monotonic() >= scrape:
                scrape = time.monotonic() + SCRAPE_S
                parties.read(party.metrics)
        self.seconds = time.monotonic() - began
        self.cpu_s, self.before, self.after = party.cpu_s() - cpu_s, before, party.exposed()
        self.memory = peak, party.memory_mib()[1]

    def delta(self, name, *labels):
        return self.after.where(name, *labels) - self.before.where(name, *labels)

    def figures(self, decisions, requests):
        return {"seconds": self.seconds, "cpu_s_per_min": self.cpu_s * 60 / self.seconds, "rss_mib": self.memory[0],
                "rss_most_mib": self.memory[1], "decisions": decisions,
                "decisions_per_min": decisions * 60 / self.seconds,
                "cpu_ms_per_decision": 1000 * self.cpu_s / decisions if decisions else None,
                "kube_requests_per_min": self.delta(requests) * 60 / self.seconds if requests in self.after else None}


def mean_s(interval, histogram):
    count = interval.delta(f"{histogram}_count")
    return interval.delta(f"{histogram}_sum") / count if count else None


# --- from a metric to the patch --------------------------------------------------------------------
class Writes(harness.Audit):
    """Without those of status, which are many."""

    def lines(self):
        return (line for line in super().lines() if '"subresource":"status"' not in line)


def reaction(size, account):
    """How long it took from the change of a figure to the first write for that function."""
    audit, began, steps = Writes(account), {}, judge.plan([objects.name_of(i) for i in range(size)])
    apps = [app for step in steps for app in step]
    for i, step in enumerate(filter(None, steps)):
        time.sleep(judge.STEP_GAP_S if i else 0)
        began |= dict.fromkeys(step, parties.step(step, judge.STEP_FACTOR))
    first, deadline = {}, time.monotonic() + judge.STEP_WAIT_S
    while len(first) < len(apps) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        first = judge.first_writes(audit.entries(objects.NAMESPACE), began)
    parties.step(apps, 1)
    return {"stepped": len(apps), "took_s": sorted(first.values())}


# --- the parties -----------------------------------------------------------------------------------
def ours(size, seconds):
    try:
        with phase("MPAs made"):
            objects.make("mpas", map(objects.name_of, range(size)))
            harness.kubectl("delete", "lease", "--all", "-n", "faasrl-mpa")
        with parties.ours() as party:
            passed = "faasrl_mpa_last_pass_timestamp_seconds"
            with phase("first pass"):
                harness.wait("a pass", lambda: party.exposed().get(passed), 180, every=POLL_S)
            first_s = party.exposed()[passed] - party.began
            # At the rate that writes are limited to, or that the API server of a busy machine takes.
            with phase("first status of each"):
                harness.wait("each MPA has its first status",
                             lambda: party.exposed().get("faasrl_mpa_status_writes_total", 0) >= size, size / 5 + 120,
                             every=POLL_S)
            time.sleep(SCRAPE_S)
            with phase("measured"):
                figures = our_figures(Interval(party, seconds))
            with phase("load of some changed"):
                reacted = reaction(size, harness.SERVICE_ACCOUNT)
            return {**figures, "start_to_first_decision_s": first_s, "reaction": reacted, **our_failures(party.exposed()),
                    "rss_most_mib": party.memory_mib()[1], "descriptors": party.descriptors()}
    finally:
        with phase("MPAs deleted"):
            objects.clear("mpas")
            objects.reset_replicas()


def our_figures(interval):
    passes = interval.delta("faasrl_mpa_pass_duration_seconds_count")
    found = interval.figures(interval.delta("faasrl_mpa_decisions_total"), "faasrl_mpa_kube_requests_total")
    queries = interval.delta("faasrl_mpa_prometheus_queries_total")
    return {**found, "passes": passes, "pass_s": mean_s(interval, "faasrl_mpa_pass_duration_seconds"),
            "pass_every_s": interval.delta("faasrl_mpa_last_pass_timestamp_seconds") / passes if passes else None,
            "pass_cpu_s": interval.cpu_s / passes if passes else None,
            "query_s": mean_s(interval, "faasrl_mpa_prometheus_query_duration_seconds"),
            "queries_per_min": queries * 60 / interval.seconds, "queries_per_pass": queries / passes if passes else None,
            "rescales": interval.delta("faasrl_mpa_rescales_total"), "resizes": interval.delta("faasrl_mpa_resizes_total"),
            "status_writes_per_min": interval.delta("faasrl_mpa_status_writes_total") * 60 / interval.seconds,
            "ready": interval.after.where("faasrl_mpa_mpas_by_condition", 'condition="Ready"', 'status="True"'),
            "pods_cached": interval.after.get("faasrl_mpa_pods_cached"),
            "pod_cache_mib": interval.after.get("faasrl_mpa_pod_cache_bytes", 0) / 2**20,
            "dashboard_mib": interval.after.get("faasrl_mpa_dashboard_bytes", 0) / 2**20}


def our_failures(exposed):
    """Since it began."""
    return {"queries_failed": exposed.where("faasrl_mpa_prometheus_queries_total", 'result="failed"'),
            "metrics_dropped": exposed.where("faasrl_mpa_metrics_dropped_total")}


RECONCILED = "horizontal_pod_autoscaler_controller_reconciliations_total"


def hpa(size, seconds):
    try:
        with phase("HPAs made"):
            objects.make("hpas", map(objects.name_of, range(size)))
        with parties.metrics_api(), parties.hpa_controller() as party:
            with phase("first pass"):
                harness.wait("the first pass of the HPA controller", lambda: party.exposed().get(RECONCILED, 0) >= size,
                             600, every=POLL_S)
            first_s = time.time() - party.began
            with phase("measured"):
                interval = Interval(party, seconds)
            decisions = interval.delta(RECONCILED)
            found = interval.figures(decisions, "rest_client_requests_total")
            with phase("load of some changed"):
                reacted = reaction(size, "admin")
            return {**found, "failed": decisions - interval.delta(RECONCILED, 'error="none"'),
                    "start_to_first_decision_s": first_s, "reaction": reacted, "rss_most_mib": party.memory_mib()[1],
                    "pass_s": size / decisions * interval.seconds if decisions else None}
    finally:
        with phase("HPAs deleted"):
            objects.clear("hpas")
            objects.reset_replicas()


LOOPS = "vpa_recommender_execution_latency_seconds_count", 'step="total"'


def vpa(size, seconds):
    parties.install_vpa()
    try:
        with phase("VPAs made"):
            objects.make("vpas", map(objects.name_of, range(size)))
        with parties.metrics_api(), parties.vpa_recommender() as party:
            with phase("first recommendations"):
                harness.wait("the first loop of the VPA recommender", lambda: has_recommended(size, party), 900, every=POLL_S)
            first_s = time.time() - party.began
            with phase("measured"):
                interval = Interval(party, max(seconds, 60))
            found = interval.figures(interval.delta(*LOOPS) * size, "rest_client_requests_total")
            return {**found, "start_to_first_decision_s": first_s, "rss_most_mib": party.memory_mib()[1]}
    finally:
        with phase("VPAs deleted"):
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
    with phase(f"{size} functions with their nodes"):
        objects.fleet(size)
    with contextlib.ExitStack() as stack:
        stack.enter_context(parties.feed())
        stack.enter_context(parties.prometheus())
        with phase("pods"):
            wait_for_pods(size)
        time.sleep(WINDOW_S + 2 * SCRAPE_S)
        for name in who:
            began = time.monotonic()
            found = PARTIES[name](size, seconds)
            found["broken"] = judge.broken(name, size, found)
            keep(name, found)
            print(f"{size} {name} ({time.monotonic() - began:.0f} s): {json.dumps(found)}", flush=True)
            wait_for_pods(size)
