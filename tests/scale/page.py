"""docs/scale.md and its plot."""
import judge
import plot
from judge import POLL_S, counting
from place import ROOT
from tell import NAMES

COLORS = {"ours": "#1f77b4", "hpa": "#d98200", "vpa": "#7f7f7f"}
PANELS = (("memory, MiB", "rss_mib"), ("CPU s per minute", "cpu_s_per_min"))
ALONE = "of faasrl-mpa alone"  # beside the others it lies near the axis

TEXT = """<!-- Written by `make bench-scale SCALE=--docs`. -->
# Thousands of MPAs

`make bench-scale` runs a real API server with fake nodes and pods ([kwok](https://kwok.sigs.k8s.io)), two pods of each function,
and a real Prometheus that scrapes generated series every 15 s: the latency histogram, CPU, CFS periods and memory of each pod.
One function in ten has a load that comes and goes over 20 minutes, the others' is steady. Each of the three is alone at its
turn, on the same Deployments and the same load: our controller with `threshold` and all options at their
defaults (but `--leader-elect=false`), for replicas alone as kwok's pods cannot be resized, the HPA
controller of Kubernetes without its limit on requests (1,000 a second instead of 20), and the VPA recommender in the same way.
Of pods that do not exist metrics-server can tell nothing: the two get metrics.k8s.io from the generator of the series.

{machine}

{table}

*Memory* is the most resident memory while it was measured, after its first pass; *the most it ever was* includes the start.
While it is measured each is scraped every 15 s, as Prometheus would, and before that asked every {poll} s at most whether it is
ready, which the HPA controller's and the recommender's *start to first decisions* is exact to. *CPU per decision* is all CPU of
the process, by the MPAs, HPAs or VPAs that it came to in that time by its own metrics: decisions, reconciliations, and loops of
the recommender times the VPAs. *A pass* is from the question to Prometheus to the last decision. *A figure changes until the
write*: the load of 1 in 100 functions (20 at least) grows by {percent:.0f} %, and the API server's audit log tells when their
replicas were first written afterwards. They grow in {steps} groups {gap:.0f} s after each other, each at another moment of
scrape and interval, and none is one whose load changes by itself. Who was not acted on within {wait} s counts as later than all
others, in p50 and p99 too. Up to 15 s of it are the scrape's, up to 15 s the interval's, and a rate over a minute rises for a
minute.

A run does not count, is told as *broken* and ends `make bench-scale` with an error, where our controller had a query to
Prometheus fail or left samples out, decided on fewer than all in a pass, or did not have every MPA `Ready` in the end; where
more than {errors:.0f} % of the HPA controller's reconciliations ended with an error; or where the recommender did no loop.
`SCALE=--check` fails also where a goal at 10,000 MPAs is missed or was not measured. `make scale-test` tries what is judged by,
without a cluster.

At sizes this small the fixed cost of each program decides; what the goals are about, 10,000 MPAs and 20,000 pods, has not been
measured yet where the largest size in the table is below that.

![memory and CPU of the three over the number of objects](images/scale.svg)
"""


def machine(sizes):
    """Each size with each party's day, and what it was measured on."""
    lines = []
    for size, found in sizes.items():
        lines += [f"{size:,}, measured on:", ""]
        lines += [f"- {NAMES[n]}: {f['when']}, {f['machine']}, load of the machine {f['load']:.1f}" for n, f in found.items()]
        lines.append("")
    return "\n".join(lines).rstrip()


def svg(sizes):
    """Of what counts alone."""
    def lines(key, who):
        return {COLORS[n]: [(size, f[n][key]) for size, f in counting(sizes, n).items()] for n in who}

    panels = [(label, lines(key, COLORS)) for label, key in PANELS]
    panels += [(f"{label}, {ALONE}", lines(key, ["ours"])) for label, key in PANELS]
    return plot.svg(panels, max(sizes), {COLORS[n]: NAMES[n] for n in NAMES}, "MPAs, HPAs or VPAs")


def text(sizes, table):
    return TEXT.format(machine=machine(sizes), table=table, percent=100 * (judge.STEP_FACTOR - 1), steps=judge.STEPS,
                       gap=judge.STEP_GAP_S, wait=judge.STEP_WAIT_S, errors=100 * judge.HPA_ERRORS, poll=POLL_S)


def write(sizes, table):
    (ROOT / "docs/images/scale.svg").write_text(svg(sizes))
    (ROOT / "docs/scale.md").write_text(text(sizes, table))
