"""docs/scale.md and its plot."""
import plot
from place import ROOT
from tell import NAMES

COLORS = {"ours": "#1f77b4", "hpa": "#d98200", "vpa": "#7f7f7f"}
PANELS = (("memory, MiB", "rss_mib"), ("CPU s per minute", "cpu_s_per_min"))

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

*Memory* is the most resident memory while it was measured, after its first pass; *the most it ever was*
includes the start. *CPU per decision* is all CPU of the process, by the MPAs, HPAs or VPAs that it came to in that time: for
our controller each MPA at each pass, for the HPA controller its reconciliations, for the recommender each VPA once a minute.
*A pass* is from the question to Prometheus to the last decision. *A figure changes until the write*: the load of 1 in 100
functions (20 at least) grows by {percent:.0f} %, and the API server's audit log tells when their replicas were
first written. All grow at one moment, so that p50 and p99 lie within one pass. Up to 15 s of it are the scrape's, up to 15 s the
interval's, and a rate over a minute rises for a minute.

At sizes this small the fixed cost of each program decides; what the goals are about, 10,000 MPAs and 20,000 pods, has not been
measured yet where the largest size in the table is below that.

![memory and CPU of the three over the number of objects](images/scale.svg)
"""


def machine(sizes):
    """Each size with its day and what it was measured on."""
    lines = []
    for size, found in sizes.items():
        first = next(iter(found.values()))
        loads = ", ".join(f"{NAMES[n]} {f['load']:.1f}" for n, f in found.items())
        lines.append(f"{size:,}: {first['when']}, {first['machine']}; load of the machine: {loads}.")
    return "\n".join(lines)


def svg(sizes):
    def lines(key):
        return {color: [(size, f[who][key]) for size, f in sizes.items() if who in f] for who, color in COLORS.items()}

    return plot.svg([(label, lines(key)) for label, key in PANELS], max(sizes), {COLORS[n]: NAMES[n] for n in NAMES},
                    "MPAs, HPAs or VPAs")


def write(sizes, table):
    from measure import STEP_FACTOR
    (ROOT / "docs/images/scale.svg").write_text(svg(sizes))
    (ROOT / "docs/scale.md").write_text(TEXT.format(machine=machine(sizes), table=table, percent=100 * (STEP_FACTOR - 1)))
