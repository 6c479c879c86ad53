"""The measuring side: pods of a given size and number on the local cluster, load on them, and what
the clients, the pods and the kernel saw."""
import collections
import dataclasses
import gzip
import math
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import harness  # noqa: E402  (its place is only known now)

NAMESPACE = "fidelity"
OUT = ROOT / "build/fidelity"
LOAD, SPIN = ROOT / "build/load", ROOT / "build/spin"
SPAN_S = 40  # of a point in a round
CALIBRATION_S = 20
RARE = 2  # calls per second of the same function beside it, in a pod without limit: how fast the machine is meanwhile
# What makes a measurement worthless, so that it is made again, a few times at most: others used this
# share of the cores, or the cores were slower than at their best by this share.
BUSY, SLOW, TRIES = 0.15, 0.10, 3
CALM_S = 10  # how long to wait for others to be done
BREATH_S = 2  # in which the control plane sees that all is well, before it is stopped again
QUANTILES = [share / 100 for share in range(101)]
OVERHEADS = 25


@dataclasses.dataclass
class Workload:
    """A function, each call of which takes one of the sizes at random. Sizes are those on a machine
    where a call takes so much CPU; on another they are changed such that it does there, too."""
    name: str
    cpu_ms: float
    sizes: list

    def paths(self):
        return [f"/{self.name}?n={size}" for size in self.sizes]


# A line of what build/load writes.
SAMPLE = re.compile(r"(?P<sent>\S+) (?P<latency>\S+) (?P<status>\d+) (?P<url>\S*) "
                    r"(cpu;dur=(?P<cpu>\S+), pod;desc=(?P<pod>\S+))?")


def skip_reason():
    """Why nothing can be measured here; None if it can."""
    status = harness.run(ROOT / "tests/cluster/cluster", "status", check=False).stdout
    if "node: real" in status:
        return None
    return ("real pods are needed, and the cluster has none: it was started without root"
            if "cluster: up" in status else "no cluster is up (make cluster-up)")


def quantile(ordered, share):
    """The value that this share of the ordered values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Fit:
    """The demand of a function's calls by its calibration. The process uses more CPU than the threads of
    its calls know of, to accept and to close: as much for each call. Overhead is what a client waits
    beyond CPU."""

    def __init__(self, calibration):
        calls = list(zip(calibration["path"], calibration["call_cpu_ms"], calibration["latency_ms"]))
        self.mean_ms = calibration["cpu_ms"]
        self.beyond_ms = self.mean_ms - sum(cpu_ms for _, cpu_ms, _ in calls) / len(calls)
        by_path = collections.defaultdict(list)
        for path, cpu_ms, _ in calls:
            by_path[path].append(cpu_ms)
        self.thread_ms = {path: sum(all_ms) / len(all_ms) for path, all_ms in by_path.items()}
        self.call_ms = {path: ms + self.beyond_ms for path, ms in self.thread_ms.items()}
        self.demand_ms = sorted(cpu_ms + self.beyond_ms for _, cpu_ms, _ in calls)
        relative = sorted((cpu_ms + self.beyond_ms) / self.call_ms[path] for path, cpu_ms, _ in calls)
        self.quantiles = [[share, quantile(relative, share)] for share in QUANTILES]  # against the path's mean
        overhead = sorted(max(0, latency_ms - cpu_ms - self.beyond_ms) for _, cpu_ms, latency_ms in calls)
        self.overheads_ms = [quantile(overhead, (n + 0.5) / OVERHEADS) for n in range(OVERHEADS)]


# --- the machine ----------------------------------------------------------------------------------
def cgroup_root():
    """Where the CPU controller is, with version 1 or 2."""
    for place in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"):
        if Path(place).is_dir():
            return Path(place)
    return Path("/sys/fs/cgroup")


class Awake:
    """Keeps the cores busy with nothing, below the priority of everything else. A core that has slept
    is slow for a while: without this a call needs more CPU time the rarer calls are, which is about
    the machine's clock and not about what is measured. Also tells how fast the cores are."""

    def __init__(self):
        self.group, self.spinners = cgroup_root() / "faasrl-awake", {}

    def __enter__(self):
        OUT.mkdir(parents=True, exist_ok=True)
        self.group.mkdir(exist_ok=True)
        (self.group / "cpu.idle").write_text("1")
        for core in os.sched_getaffinity(0):
            tally = OUT / f"spin-{core}"
            spinner = subprocess.Popen([SPIN, tally], preexec_fn=harness.die_with_parent)
            self.spinners[tally] = spinner
            (self.group / "cgroup.procs").write_text(str(spinner.pid))
            os.sched_setaffinity(spinner.pid, {core})
        time.sleep(1)
        return self

    def __exit__(self, *exc):
        for spinner in self.spinners.values():
            spinner.kill()
            spinner.wait()
        harness.wait("the cgroup can go", self.gone)

    def gone(self):
        try:
            self.group.rmdir()
        except OSError:
            return False
        return True

    def tally(self):
        """Rounds of a fixed work so far, and the CPU time in seconds that they took."""
        pairs = [struct.unpack("QQ", tally.read_bytes()) for tally in self.spinners]
        return {"spin_rounds": sum(rounds for rounds, _ in pairs),
                "spin_s": sum(cpu_ns for _, cpu_ns in pairs) / 1e9}


class Quiet:
    """Stops the control plane while something is measured, which on two cores takes a good part of
    them. Pods, their quotas and the rules that lead to them are the kernel's, and go on."""
    PARTS = ["prometheus", "pod-targets", "kube-controller-manager", "kube-scheduler", "kube-proxy",
             "kubelet", "containerd", "kube-apiserver", "etcd"]

    def __init__(self):
        files = [harness.RUN / "pids" / part for part in self.PARTS]
        self.pids = [int(file.read_text()) for file in files if file.exists()]

    def __enter__(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *exc):
        for pid in reversed(self.pids):
            os.kill(pid, signal.SIGCONT)


def node_ticks():
    """Time of all cores so far, as (busy, stolen by other machines of the host)."""
    values = [int(v) for v in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = values
    return user + nice + system + irq + softirq, steal


def cgroup_stat(uid, below=""):
    """cpu.stat of a pod, or of its containers together: each has a quota of its own."""
    found = collections.Counter({"nr_periods": 0, "nr_throttled": 0})
    for path in cgroup_root().glob(f"faasrl-cluster/kubepods/**/pod{uid}{below}/cpu.stat"):
        found.update({name: int(value) for name, value in map(str.split, path.open())})
    return found


def realtime():
    """The clients' clock must not wait for the functions that it times."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        os.nice(-10)


def ticks_per_s():
    """CONFIG_HZ of the kernel that runs."""
    for name, read in (("/proc/config.gz", gzip.open), (f"/boot/config-{platform.release()}", open)):
        if Path(name).exists():
            with read(name, "rt") as config:
                return int(re.search(r"^CONFIG_HZ=(\d+)$", config.read(), re.M)[1])
    return 250


def machine():
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    version = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
    return {"cores": os.cpu_count(), "cpu": cpu.group(1) if cpu else platform.machine(),
            "kernel": platform.release().split("-")[0], "hz": ticks_per_s(), "cgroup": version,
            "date": time.strftime("%Y-%m-%d")}


def manifest(cpu_milli, replicas):
    """Pods of the test function, of which nobody but us asks anything; 0 milli-cores: no limit. Those of
    all sizes are there at once, and all but one of them idle, so that they request next to nothing."""
    deployment, service = yaml.safe_load_all(harness.FUNCTION)
    name = f"f-{cpu_milli}-{replicas}"
    for what in (deployment["metadata"], deployment["spec"]["template"]["metadata"], service["metadata"]):
        what["labels"]["app"] = name
    deployment["metadata"]["name"] = service["metadata"]["name"] = name
    deployment["spec"]["selector"]["matchLabels"]["app"] = service["spec"]["selector"]["app"] = name
    deployment["spec"]["replicas"] = replicas
    template = deployment["spec"]["template"]
    del template["metadata"]["annotations"]
    container = template["spec"]["containers"][0]
    container["args"] = []
    container["startupProbe"] = dict(container.pop("readinessProbe"), periodSeconds=1)
    resources = container["resources"]
    resources["requests"]["cpu"] = "20m"
    resources["limits"]["cpu"] = f"{cpu_milli}m"
    if not cpu_milli:
        del resources["limits"]["cpu"]
    return yaml.safe_dump_all([deployment, service])


# --- the cluster -----------------------------------------------------------------------------------
class Bed:
    """A namespace of its own with pods of all sizes and numbers, of which one lot works at a time."""

    def __init__(self, awake, shapes, best_pace):
        self.machine, self.awake, self.best_pace = machine(), awake, best_pace
        self.shapes, self.pods, self.url, self.alone = [(0, 1), *shapes], [], None, None

    def __enter__(self):
        harness.cluster("load-image", ROOT / "build/function.tar")
        harness.kubectl("create", "namespace", NAMESPACE, check=False)
        for shape in self.shapes:
            harness.apply(manifest(*shape), NAMESPACE)
        for cpu_milli, replicas in self.shapes:
            harness.kubectl("rollout", "status", f"deployment/f-{cpu_milli}-{replicas}", "-n", NAMESPACE,
                            "--timeout=110s")
        time.sleep(3)  # until Services lead to the pods, and the machine is quiet
        self.use(0, 1)
        self.alone = self.url
        return self

    def __exit__(self, *exc):
        harness.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def use(self, cpu_milli, replicas):
        """From now on, the pods of this size and number."""
        name = f"f-{cpu_milli}-{replicas}"
        self.pods = harness.listing("pods", NAMESPACE, "-l", f"app={name}")
        self.url = f"http://{harness.get('service', name, NAMESPACE)['spec']['clusterIP']}"

    def start_load(self, url, workload, trace, samples, *flags):
        targets = [f"--target={url}{path}" for path in workload.paths()]
        return subprocess.Popen([str(LOAD), *targets, "--trace", trace, "--json", "--timeout=30s",
                                 f"--samples={samples}", *flags], preexec_fn=realtime, stdout=subprocess.DEVNULL)

    def end_load(self, process, samples):
        assert process.wait() == 0, "the load generator failed"
        return [SAMPLE.fullmatch(line) for line in samples.read_text().splitlines()]

    def start_beside(self, workload, span_s):
        return self.start_load(self.alone, workload, f"{RARE}@{span_s}s", OUT / "beside")

    def end_beside(self, process):
        """The CPU of a call."""
        calls = [float(row["cpu"]) for row in self.end_load(process, OUT / "beside") if row["status"] == "200"]
        return sum(calls) / len(calls)

    def load(self, workload, trace, *flags):
        """The requests of a trace in order of time, by columns."""
        samples = OUT / "samples"
        targets = [self.url + path for path in workload.paths()]
        rows = self.end_load(self.start_load(self.url, workload, trace, samples, *flags), samples)
        good = [row for row in rows if row["status"] == "200"]
        names = sorted({row["pod"] for row in good})
        return {"sent_s": [float(row["sent"]) for row in good],
                "latency_ms": [float(row["latency"]) for row in good],
                "call_cpu_ms": [float(row["cpu"]) for row in good],
                "path": [targets.index(row["url"]) for row in good],
                "pod": [names.index(row["pod"]) for row in good],
                "failed": len(rows) - len(good)}

    def observe(self, workload, trace, *flags):
        """One run of load, with what it used: the least disturbed of some tries."""
        runs = []
        for _ in range(TRIES):
            time.sleep(BREATH_S)
            with Quiet():
                self.await_calm()
                run = self.observe_once(workload, trace, *flags)
            self.best_pace = min(self.best_pace, run["pace"])
            busy = run["background_cores"] / self.machine["cores"]
            slow = run["pace"] / self.best_pace - 1
            runs.append((max(busy / BUSY, slow / SLOW), len(runs), run))
            if runs[-1][0] <= 1:
                break
            print(f"    others used {busy:.0%} of the machine, and it was slower by {slow:.0%}",
                  flush=True)
        return min(runs)[-1]

    def await_calm(self):
        """Until others leave the cores alone, for some seconds at most: the control plane waits, too."""
        for _ in range(CALM_S):
            before = self.others_s()
            time.sleep(1)
            if self.others_s() - before <= BUSY * self.machine["cores"]:
                return

    def others_s(self):
        """CPU time of all but us, who do nothing now."""
        return node_ticks()[0] / os.sysconf("SC_CLK_TCK") - self.awake.tally()["spin_s"]

    def observe_once(self, workload, trace, *flags):
        before, begin = self.counters(), time.monotonic()
        beside = self.start_beside(workload, SPAN_S) if self.url != self.alone else None
        seen = self.load(workload, trace, *flags)
        after, took = self.counters(), time.monotonic() - begin
        seen["alone_ms"] = self.end_beside(beside or self.start_beside(workload, CALIBRATION_S))
        used = {name: after[name] - before[name] for name in after}
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        return dict(seen, cpu_s=used["cpu_s"], periods=used["pod_periods"],
                    throttled=used["pod_throttled"], inner_periods=used["container_periods"],
                    inner_throttled=used["container_throttled"],
                    background_cores=(used["busy"] * tick_s - used["spin_s"] - used["cpu_s"]) / took,
                    pace=used["spin_s"] / used["spin_rounds"], at=time.time(),
                    steal=used["steal"] * tick_s / took / self.machine["cores"])

    def counters(self):
        found = collections.Counter(cpu_s=0)
        for pod in self.pods:
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/metrics",
                                        timeout=30) as answer:
                text = answer.read().decode()
            found["cpu_s"] += float(re.search(r"^process_cpu_seconds_total (.*)$", text, re.M)[1])
            for level, below in (("pod", ""), ("container", "/*")):
                stat = cgroup_stat(pod["metadata"]["uid"], below)
                found[level + "_periods"] += stat["nr_periods"]
                found[level + "_throttled"] += stat["nr_throttled"]
        found["busy"], found["steal"] = node_ticks()
        found.update(self.awake.tally())
        return found

    def fit_sizes(self, workload):
        """Such that a call takes as much CPU as is wanted."""
        self.use(0, 1)
        for _ in range(2):
            calls = self.load(workload, "20@1s")["call_cpu_ms"]
            factor = workload.cpu_ms / (sum(calls) / len(calls))
            workload.sizes = [max(1, round(size * factor)) for size in workload.sizes]

    def calibrate(self, workload):
        """The calls of a function alone on ample CPU: what CPU time they need, and what a client waits
        beyond that. Calls come evenly, as often as they can without meeting each other: rare ones
        would find caches that forgot them."""
        self.use(0, 1)
        self.load(workload, "20@1s")  # the first find nothing in caches
        first = self.load(workload, "10@2s")
        rate = 300 / quantile(sorted(first["latency_ms"]), 0.95)
        run = self.observe(workload, f"{rate:.3f}@{CALIBRATION_S}s")
        run.update(cpu_ms=run["cpu_s"] * 1e3 / len(run["sent_s"]), sizes=workload.sizes)
        print(f"    {len(run['sent_s'])} calls, {run['cpu_ms']:.2f} ms of CPU each", flush=True)
        return run

    def measure(self, workload, cpu_milli, replicas, rate, seed):
        self.use(cpu_milli, replicas)
        run = self.observe(workload, f"{rate:.3f}@{SPAN_S}s", "--poisson", f"--seed={seed}")
        ordered = sorted(run["latency_ms"])
        run.update(rate=rate, span_s=SPAN_S, p50_ms=quantile(ordered, 0.5),
                   p99_ms=quantile(ordered, 0.99),
                   utilization=run["cpu_s"] * 1e3 / (SPAN_S * cpu_milli * replicas),
                   throttled=run["inner_throttled"] / max(1, run["inner_periods"]))
        print(f"    {len(ordered)} requests, p50 {run['p50_ms']:.1f} ms, p99 {run['p99_ms']:.1f} ms, "
              f"utilisation {run['utilization']:.0%}", flush=True)
        return run
