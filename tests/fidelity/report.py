"""What comes out of `make fidelity`: the table, docs/fidelity.md and two figures of build/bench.json."""
import json
import statistics

from measure import BUSY, CALIBRATION_S, SLOW, SPAN_S, TRIES, fit

MEDIAN_GOAL, WORST_GOAL = 0.15, 0.35
FIGURES = {"p50_ms": "p50", "p99_ms": "p99", "utilization": "CPU utilisation"}
HEADS = ("function", "cpu", "pods", "rate/s", "util", "sim", "p50 ms", "sim", "off", "p99 ms", "rounds",
         "sim", "of runs", "off", "throttled", "sim")
FORM = ("{:<10} {:>5} {:>4} {:>7}  {:>4} {:>4}  {:>7} {:>7} {:>5}  {:>7} {:>12} {:>7} {:>12} {:>5}  "
        "{:>9} {:>4}")


class Row:
    """A point: what was measured in its rounds, and what is simulated."""

    def __init__(self, point, rounds, simulated):
        self.point, self.rounds, self.simulations = point, rounds, simulated

    def measured(self, figure):
        return statistics.median(run[figure] for run in self.rounds)

    def simulated(self, figure):
        return statistics.median(run[figure] for run in self.simulations)

    def error(self, figure):
        """Of the simulated value, relative and with its sign."""
        return self.simulated(figure) / self.measured(figure) - 1

    def cells(self):
        p99 = [run["p99_ms"] for run in self.rounds]
        return (self.point.function, f"{self.point.cpu_milli}m", self.point.replicas,
                f"{self.measured('rate'):.1f}",
                f"{self.measured('utilization'):.0%}", f"{self.simulated('utilization'):.0%}",
                f"{self.measured('p50_ms'):.1f}", f"{self.simulated('p50_ms'):.1f}", f"{self.error('p50_ms'):+.0%}",
                f"{self.measured('p99_ms'):.1f}", f"{min(p99):.0f} to {max(p99):.0f}",
                f"{self.simulated('p99_ms'):.1f}", f"{self.simulated('p99_low_ms'):.0f} to {self.simulated('p99_high_ms'):.0f}",
                f"{self.error('p99_ms'):+.0%}",
                f"{self.measured('throttled'):.0%}", f"{self.simulated('throttled'):.0%}")


def summary(rows, figure):
    """Median and worst size of the errors."""
    sizes = [abs(row.error(figure)) for row in rows]
    return statistics.median(sizes), max(sizes)


def summary_lines(rows):
    for figure, name in FIGURES.items():
        median, worst = summary(rows, figure)
        yield f"{name}: median error {median:.1%}, worst {worst:.1%}"


def show(rows):
    print(FORM.format(*HEADS))
    for row in rows:
        print(FORM.format(*row.cells()))
    print(f"{len(rows)} points", *summary_lines(rows), sep="; ")


# --- docs/fidelity.md -------------------------------------------------------------------------------
TEXT = """<!-- Written by `make fidelity`. -->
# How far the simulator can be trusted

The [simulator](simulator.md) against real pods: the functions of `tests/functions` on the local cluster of
`tests/cluster` (kubelet, containerd, kube-proxy, CFS quota), at {points} points from {low:.0%} to {high:.0%}
utilisation of their CPU limit. `make fidelity` does it again, in about 35 minutes.

Measured on {date} on a machine with {cores} cores ({cpu}), Linux {kernel}, cgroup v{cgroup}. Control plane,
Prometheus and load generator ran on the same cores.

{summary}

The aim is a median error of p99 of at most {MEDIAN_GOAL:.0%}, and of at most {WORST_GOAL:.0%} at the worst point.

| function | CPU limit | pods | requests/s | utilisation | simulated | p50 | simulated | off | p99 | of rounds | simulated | of runs | off | throttled | simulated |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{table}

Latencies are in milliseconds, as clients see them. *Off* is simulated against measured. Utilisation is CPU used
against the limit of all pods. *Throttled* is the share of CFS periods, among those with work, in which a pod ran
out of quota.

## Method

- **Load** is an open loop with Poisson arrivals. Each request has a connection of its own, which kube-proxy
  gives to a pod at random. The generator runs with realtime priority, so that its clock does not wait for the
  functions that it times.
- **Calibration.** A function runs in a pod without limit for {CALIBRATION_S} s, one call after the other. The CPU
  time that the process used gives the mean demand of a call, its latencies give the distribution, and what they
  have beyond CPU time is overhead, the same for each call. Nothing is fitted to the points of the table.
- **Points** are where chance plays a small part by the simulator's own account: the steepest slopes of p99 are left
  out.
- **Rounds.** A machine that is shared, or virtual, is not equally fast at all times. Everything is measured in
  {rounds} round{'s' * (rounds > 1)}, minutes apart, a point each time with the same requests. Given are medians, and for p99 the
  lowest and highest (*of rounds*): what the real cluster itself does not repeat, no simulator can foretell. A
  measurement during which others used more than {BUSY:.0%} of the machine, or its cores were slower than at their
  best by more than {SLOW:.0%}, is made again, up to {TRIES} times. Idle cores are kept awake, as a core that slept
  is slow at first.
- **Simulation.** Requests arrive when they were really sent. What is chance in the cluster stays chance: which pod
  a request meets, where in a period of CFS it falls, and which of its demands it has. Each point is simulated
  {runs} times; given are medians, and for p99 the lowest and highest tenth (*of runs*).

| function | calls, at random | CPU of a call, ms | 4th to 96th percentile | overhead, ms |
|---|---|--:|--:|--:|
{demands}

## What is not modelled

- **Turns.** Threads take turns of some milliseconds on a core; simulated requests share it evenly.
- **Ticks and slices.** The kernel looks at quota once per tick (4 ms at 250 Hz) and hands it out to cores in slices
  of 5 ms. A pod can run over its quota by a few milliseconds, and pays that back in the next period.
- **Two quotas.** A pod and its container have a quota each, whose periods begin at different times. Simulated is
  one.
- **Speed.** A call needs more CPU time when caches are cold or neighbours are busy, on this machine or, where it
  is virtual, on its host.
- **The rest of the node** is taken from its cores by what it uses on average, not in bursts.
"""


def demand_text(workload, calibrations):
    fits = [fit(calibration) for calibration in calibrations]
    shares = [dict(map(tuple, quantiles)) for quantiles, _ in fits]
    low, high = (statistics.median(found[share] for found in shares) for share in (0.05, 0.95))
    cpu_ms = [calibration["cpu_ms"] for calibration in calibrations]
    spread = f" ({min(cpu_ms):.2f} to {max(cpu_ms):.2f})" * (len(cpu_ms) > 1)
    overhead = [statistics.median(waits[at] for _, waits in fits) for at in (len(fits[0][1]) // 2, -1)]
    calls = "<br>".join(f"`{path}`" for path in workload.paths)
    return (f"| {workload.name} | {calls} | {statistics.median(cpu_ms):.2f}{spread} | {low:.1f} to {high:.1f} | "
            f"{overhead[0]:.2f}, {overhead[1]:.2f} |")


def document(rows, calibrations, machine, **facts):
    used = [row.measured("utilization") for row in rows]
    return TEXT.format(
        low=min(used), high=max(used), points=len(rows),
        table="\n".join("| " + " | ".join(map(str, row.cells())) + " |" for row in rows),
        summary="\n".join(f"- {line}" for line in summary_lines(rows)),
        demands="\n".join(demand_text(*pair) for pair in calibrations),
        BUSY=BUSY, SLOW=SLOW, SPAN_S=SPAN_S, TRIES=TRIES, CALIBRATION_S=CALIBRATION_S, MEDIAN_GOAL=MEDIAN_GOAL, WORST_GOAL=WORST_GOAL,
        **machine, **facts)


# --- build/bench.json -------------------------------------------------------------------------------
def write_figures(path, rows):
    """Beside what other measurements left there."""
    median, worst = summary(rows, "p99_ms")
    figures = [{"name": name, "value": value, "unit": "ratio", "peer": None, "peer_value": None,
                "ratio": None, "goal": goal}
               for name, value, goal in (("fidelity_p99_median_error", median, MEDIAN_GOAL),
                                         ("fidelity_p99_worst_error", worst, WORST_GOAL))]
    names = [f["name"] for f in figures]
    others = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([f for f in others if f["name"] not in names] + figures, indent=2) + "\n")
