"""What comes out of `make fidelity`: the table, docs/fidelity.md and figures of build/bench.json."""
import json
import statistics

from measure import BUSY, CALIBRATION_S, Fit, RARE, SLOW, SPAN_S, TRIES, quantile

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


def against(error, goal):
    return "reached" if error <= goal else "missed"


def show(rows, variants):
    print(FORM.format(*HEADS))
    for row in rows:
        print(FORM.format(*row.cells()))
    print(f"{len(rows)} points", *summary_lines(rows), sep="; ")
    for name, others in variants.items():
        median, worst = summary(others, "p99_ms")
        print(f"p99, {name}: {median:.1%} ({against(median, MEDIAN_GOAL)}), {worst:.1%} ({against(worst, WORST_GOAL)})")


# --- docs/fidelity.md -------------------------------------------------------------------------------
TEXT = """<!-- Written by `make fidelity`. -->
# How far the simulator can be trusted

The [simulator](simulator.md) against real pods: the functions of `tests/functions` on the local cluster of
`tests/cluster` (kubelet, containerd, kube-proxy, CFS quota), at {points} points from {low:.0%} to {high:.0%}
utilisation of their CPU limit. `make fidelity` does it again, in 25 minutes a round and three rounds unless told
otherwise (`FIDELITY=--rounds=1`).

Measured on {date} on a machine with {cores} cores ({cpu}), Linux {kernel} ({hz} Hz), cgroup v{cgroup}. The
load generator ran on the same cores.
{rounds_text}

The aim is a median error of p99 of at most {MEDIAN_GOAL:.0%}, and of at most {WORST_GOAL:.0%} at the worst point. A request's demand is
fitted in one calibration, before any point is measured. The machine then is faster or slower from minute to minute, and how
well p99 is foretold hangs on where the simulator knows that from:

| a request's demand | median error of p99 | aim | worst | aim |
|---|--:|---|--:|---|
{paces}

- The first is what a calibration alone foretells.
- The second knows besides how fast the machine was meanwhile, by a pod without limit beside the point: of the point itself, nothing.
- The third is no prediction. It takes the pace from the CPU time of the very calls whose latency is compared, and so tells
  how well the model of sharing and quotas holds where demand is known. All below is of the third, its column of simulated utilisation too:
  that repeats the CPU time which went in, and is a check of the sums and not of a prediction.

In all three, when requests arrive, at which pod, what they ask for and what the rest of the node uses are the point's own.

Of the third:

{summary}

| function | CPU limit | pods | requests/s | utilisation | simulated | p50 | simulated | off | p99 | of rounds | simulated | of runs | off | throttled | simulated |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{table}

Latencies are in milliseconds, as clients see them. *Off* is simulated against measured. Utilisation is CPU used
against the limit of all pods. *Throttled* is the share of CFS periods, among those with work, in which a container
ran out of its quota.

## Method

- **Load** is an open loop with Poisson arrivals, for {SPAN_S} s a point. Each request has a connection of its own,
  which kube-proxy gives to a pod at random. The generator runs with realtime priority, so that its clock does not
  wait for the functions that it times.
- **Calibration.** A function runs in a pod without limit for {CALIBRATION_S} s, one call after the other. Each answer
  tells the CPU time of its thread; what the process used beyond that is added to each call alike. What a client
  waits beyond CPU time is overhead, drawn at random for each simulated request. No latency of a point of the table is
  used, but CPU time is (*Pace*).
- **Quiet.** While a point is measured, the control plane, kubelet, containerd and Prometheus are stopped (`SIGSTOP`): on
  two cores they take a part of them, in bursts. Pods, their quotas and the rules that lead to them are the kernel's, and
  go on.
- **Calls** are made so large that they take about as much CPU on any machine, 7 to 40 ms as calls of many functions do.
  Of 3 to 6 ms, as they were before, p99 hangs on the kernel's own grain (its tick of 4 ms, turns of threads, slices of
  quota of 5 ms), which is not modelled: two measurements with such calls were off by 21 and 30% in the median.
- **Pace.** A machine that is shared, or virtual, is not equally fast at all times: calls were seen to take a third more
  CPU time ten seconds later. The demand of a request is that of its calibration, scaled by the CPU time, against
  theirs, of the calls of the same point within 2.5 s of it. CPU time has no waiting in it, but it does give utilisation away,
  and how the point's demands differ from their calibration for whatever reason. That it is followed over time, and what each request asked for, was
  decided after a look at the first measurement with long calls (p99 off by 6.2 % in the median, 30.6 % at worst), and a second
  one confirmed it (5.2 % and 33.9 %). For the pace beside the point, the same function is called {RARE}
  times a second in a pod without limit. On each core a process of the lowest
  priority repeats a fixed work, which keeps the core from sleeping and tells when it is too slow to measure at all.
- **Points** were chosen before anything was measured, from a grid of functions, limits, pods and utilisation: where
  the simulator says that its p99 varies by chance by no more than 15%, and by no more than 20% if demand is 3% off.
  Elsewhere p99 is a matter of luck, at any length of a test that one can wait for.
- **Rounds.** Everything is measured {times}, minutes apart, a point each time with other requests, and
  simulated with these. Given are medians, and for p99 the lowest and highest (*of rounds*). A measurement during which
  others used more than {BUSY:.0%} of the machine, or its cores were slower than at their best by more than {SLOW:.0%},
  is made again, up to {TRIES} times.
- **Simulation.** Requests arrive when they were really sent, at the pods that really got them, as their answers tell,
  and ask for what they really asked for: the model is measured and not the dice of kube-proxy and the client. What is
  chance inside a pod stays chance: where in a period of CFS a request falls, and which of its demands it has. Each point is simulated {runs} times; given are
  medians, and for p99 the lowest and highest tenth (*of runs*). Pods and containers have a quota each (`pod_quota`).
  That they may overdraw it until the tick (`tick_s`) is left out: of four measurements two came nearer without it, and two
  with it. What slices take away seems to make up for it. See [simulator.md](simulator.md).

What parts of the model are worth, as the error of p99, with the pace of the point's own calls:

| simulated | median | worst |
|---|--:|--:|
{parts}

| function | calls, at random | CPU of a call, ms | 5th to 95th percentile | overhead, ms: median, highest 2% |
|---|---|--:|--:|--:|
{demands}

## What is not modelled

- **Turns.** Threads take turns of some milliseconds on a core; simulated requests share it evenly.
- **Slices.** The kernel hands quota to cores in slices of 5 ms. A core can have some left while another stands still.
- **Speed** from one call to the next: a call needs more CPU time when caches are cold or neighbours are busy, on this
  machine or, where it is virtual, on its host. Only what lasts for seconds is followed.
- **The rest of the node** is taken from its cores by what it uses on average, not in bursts.
"""


def demand_text(workload, calibrations):
    fits = [Fit(calibration) for calibration in calibrations]
    low, high = (statistics.median(quantile(fit.demand_ms, share) for fit in fits) for share in (0.05, 0.95))
    cpu_ms = [calibration["cpu_ms"] for calibration in calibrations]
    spread = f" ({min(cpu_ms):.2f} to {max(cpu_ms):.2f})" * (len(cpu_ms) > 1)
    middle = len(fits[0].overheads_ms) // 2
    overhead = [statistics.median(fit.overheads_ms[at] for fit in fits) for at in (middle, -1)]
    calls = "<br>".join(f"`{path}`" for path in workload.paths())
    return (f"| {workload.name} | {calls} | {statistics.median(cpu_ms):.2f}{spread} | {low:.1f} to {high:.1f} | "
            f"{overhead[0]:.2f}, {overhead[1]:.2f} |")


def pace_text(name, rows):
    median, worst = summary(rows, "p99_ms")
    return f"| {name} | {median:.1%} | {against(median, MEDIAN_GOAL)} | {worst:.1%} | {against(worst, WORST_GOAL)} |"


def part_text(name, rows):
    median, worst = summary(rows, "p99_ms")
    return f"| {name} | {median:.1%} | {worst:.1%} |"


def rounds_text(rounds):
    if rounds > 1:
        return f"Everything was measured in {rounds} rounds."
    return ("Everything was measured in one round (`--rounds=1`): *of rounds* is a single measurement, and tells\n"
            "nothing of how much it would vary.")


def document(rows, paces, parts, calibrations, machine, rounds, runs):
    """The rows are those of the table; errors by name are of the paces, and of the parts of the model."""
    used = [row.measured("utilization") for row in rows]
    return TEXT.format(
        low=min(used), high=max(used), points=len(rows), runs=runs,
        times="once" if rounds == 1 else f"{rounds} times", rounds_text=rounds_text(rounds),
        table="\n".join("| " + " | ".join(map(str, row.cells())) + " |" for row in rows),
        summary="\n".join(f"- {line}" for line in summary_lines(rows)),
        paces="\n".join(pace_text(*pair) for pair in paces.items()),
        parts="\n".join(part_text(*pair) for pair in parts.items()),
        demands="\n".join(demand_text(*pair) for pair in calibrations),
        BUSY=BUSY, RARE=RARE, SLOW=SLOW, SPAN_S=SPAN_S, TRIES=TRIES, CALIBRATION_S=CALIBRATION_S,
        MEDIAN_GOAL=MEDIAN_GOAL, WORST_GOAL=WORST_GOAL, **machine)


# --- build/bench.json -------------------------------------------------------------------------------
def write_figures(path, paces):
    """Beside what other measurements left there. The paces are rows by the figures' names."""
    figures = []
    for name, rows in paces.items():
        median, worst = summary(rows, "p99_ms")
        figures += [{"name": f"fidelity_p99_{which}_error_{name}", "value": value, "unit": "ratio", "peer": None,
                     "peer_value": None, "ratio": None, "goal": goal}
                    for which, value, goal in (("median", median, MEDIAN_GOAL), ("worst", worst, WORST_GOAL))]
    others = json.loads(path.read_text()) if path.exists() else []
    kept = [f for f in others if not f["name"].startswith("fidelity_")]
    path.write_text(json.dumps(kept + figures, indent=2) + "\n")
