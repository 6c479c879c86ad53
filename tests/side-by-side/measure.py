"""What the measurements side by side have in common: the same requests to each at the same moments, a look at the pods
every so often, a table and a plot of what came of it."""
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import harness  # noqa: E402  (its place is only known now)

OUT = ROOT / "build/side-by-side"
GOAL_MS = 250
LOOK_S = 2
SILENCE_S = 20
COLORS = ("#1f77b4", "#d98200", "#7f7f7f")


# --- watching --------------------------------------------------------------------------------------
def milli(cpu):
    return int(cpu[:-1]) if cpu.endswith("m") else int(float(cpu) * 1000)


def reserved_milli(pod):
    """What the kubelet has in force, and until it says so what the pod asks for."""
    asked = {c["name"]: c["resources"]["requests"]["cpu"] for c in pod["spec"]["containers"]}
    for status in pod["status"].get("containerStatuses", []):
        asked[status["name"]] = status.get("resources", {}).get("requests", {}).get("cpu", asked[status["name"]])
    return sum(map(milli, asked.values()))


class Watch(threading.Thread):
    """Pods and their CPU, of each by a function that lists them: (when, how many, milli-cores)."""

    def __init__(self, pods):
        super().__init__(daemon=True)
        self.pods, self.rows, self.over, self.began = pods, {who: [] for who in pods}, False, time.monotonic()

    def look(self, who):
        sizes = [reserved_milli(pod) for pod in self.pods[who]() if pod["status"]["phase"] in ("Pending", "Running")]
        self.rows[who].append((time.monotonic() - self.began, len(sizes), sum(sizes)))

    def run(self):
        while not self.over:
            for who in self.pods:
                self.look(who)
            time.sleep(LOOK_S)


def send(targets, trace):
    """The same requests to each, whose flags of the load generator say where that is; returns each one's
    (sent s, latency ms, HTTP status)."""
    runs = {}
    for who, flags in targets.items():
        samples = OUT / f"{who}.samples"
        runs[who] = samples, subprocess.Popen(
            [str(harness.BUILD / "load"), *flags, "--trace", trace, "--poisson", "--seed=7", "--json", "--timeout=10s",
             f"--samples={samples}"], stdout=subprocess.DEVNULL, preexec_fn=harness.die_with_parent)
    found = {}
    for who, (samples, process) in runs.items():
        assert process.wait() == 0
        rows = [line.split()[:3] for line in samples.read_text().splitlines()]
        found[who] = [(float(sent), float(latency), int(status)) for sent, latency, status in rows]
    return found


def watched(pods, targets, trace):
    """What came of a trace: requests and rows of each."""
    watch = Watch(pods)
    watch.start()
    requests = send(targets, trace)
    watch.over = True
    watch.join()
    return {"requests": requests, "rows": watch.rows}


# --- telling ---------------------------------------------------------------------------------------
def core_s(rows):
    return sum((later[0] - row[0]) * row[2] / 1000 for row, later in zip(rows, rows[1:]))


def cold_starts(requests, rows):
    """How long those requests took that came after a silence and found no pod."""
    found, before = [], 0.0
    for sent, latency, _ in sorted(requests):
        pods = [count for at, count, _ in rows if at <= sent]
        if sent - before > SILENCE_S and pods and pods[-1] == 0:
            found.append(latency)
        before = sent
    return found


def figures(rounds, who):
    """Of each round."""
    found = []
    for requests, rows, restarts in ((r["requests"][who], r["rows"][who], r["restarts"][who]) for r in rounds):
        late = sum(latency > GOAL_MS or status != 200 for _, latency, status in requests)
        ordered = sorted(latency for _, latency, _ in requests)
        found.append({"requests": len(requests), "late": late / len(requests),
                      "failed": sum(status != 200 for *_, status in requests),
                      "p99": ordered[int(0.99 * len(ordered))], "core_s": core_s(rows),
                      "replicas": statistics.mean(row[1] for row in rows), "cold": cold_starts(requests, rows),
                      "restarts": restarts})
    return found


def told(cold):
    """As "3: 1.2 to 2.5 s"."""
    return f"{len(cold)}: {min(cold) / 1000:.1f} to {max(cold) / 1000:.1f} s" if cold else "0"


def table(rounds, names, to_zero=False):
    """Means over rounds, and the least and most of what matters. Cold starts are told of those that go to zero."""
    lines = ["| | requests | late | p99 | CPU reserved, core-seconds | replicas, mean |" +
             (" cold starts |" if to_zero else "") + " failed | restarts |",
             "|---|--:|--:|--:|--:|--:|" + ("--:|" if to_zero else "") + "--:|--:|"]
    for who, name in names.items():
        found = figures(rounds, who)
        spread = {key: (min(f[key] for f in found), max(f[key] for f in found)) for key in ("late", "core_s", "p99")}
        cold = [latency for f in found for latency in f.pop("cold")]
        mean = {key: statistics.mean(f[key] for f in found) for key in found[0]}
        total = {key: sum(f[key] for f in found) for key in ("failed", "restarts")}
        lines.append(f"| {name} | {mean['requests']:.0f} | {mean['late']:.2%} ({spread['late'][0]:.2%} to "
                     f"{spread['late'][1]:.2%}) | {mean['p99']:.0f} ms ({spread['p99'][0]:.0f} to {spread['p99'][1]:.0f}) | "
                     f"{mean['core_s']:.0f} ({spread['core_s'][0]:.0f} to {spread['core_s'][1]:.0f}) | "
                     f"{mean['replicas']:.2f} |" + (f" {told(cold)} |" if to_zero else "") +
                     f" {total['failed']} | {total['restarts']} |")
    return "\n".join(lines)


PLOT_WIDTH, PANEL, LEFT, GAP = 860, 130, 62, 34


def panel(top, title, series, most, span, unit, colors, ticks=None, goal=None):
    """One diagram of the plot: lines over time, as SVG."""
    bottom = top + PANEL
    parts = [f'<text x="{LEFT}" y="{top - 8}" class="t">{title}</text>',
             f'<path d="M{LEFT} {top}V{bottom}H{PLOT_WIDTH}" class="a"/>']
    for tick in ticks or (0, most / 2, most):
        y = bottom - PANEL * tick / most
        parts += [f'<path d="M{LEFT} {y:.1f}H{PLOT_WIDTH}" class="g"/>',
                  f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="n">{tick:g}{unit if tick else ""}</text>']
    if goal:
        y = bottom - PANEL * goal / most
        parts += [f'<path d="M{LEFT} {y:.1f}H{PLOT_WIDTH}" class="goal"/>',
                  f'<text x="{LEFT + 6}" y="{y - 4:.1f}" class="s">goal</text>']
    for name, points in series.items():
        place = [(LEFT + (PLOT_WIDTH - LEFT) * at / span, bottom - PANEL * min(value / most, 1)) for at, value in points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in place)
        parts.append(f'<path d="{path}" fill="none" stroke="{colors.get(name, "#444")}" stroke-width="1.5"/>')
    return parts


def minutes(bottom, span):
    """Below the last diagram."""
    return [f'<text x="{LEFT + (PLOT_WIDTH - LEFT) * at / span:.1f}" y="{bottom + 16}" class="m">{at // 60} min</text>'
            for at in range(0, int(span) + 1, 60)]


def windowed(requests, span, width, measure):
    return [(at + width / 2, measure([r for r in requests if at <= r[0] < at + width]))
            for at in range(0, int(span), width)]


def room(series):
    """The next of 1, 2, 5, 10… that all of it stays below."""
    most = max(value for points in series.values() for _, value in points)
    return next(step * 10 ** power for power in range(-3, 6) for step in (1, 2, 5) if step * 10 ** power > most)


def plot(last, names, file):
    first, colors = next(iter(names)), dict(zip(names, COLORS))
    span = max(row[0] for row in last["rows"][first])
    def p95(part): return sorted(r[1] for r in part)[int(0.95 * len(part))] if part else 0
    load = {"load": windowed(last["requests"][first], span, 10, lambda part: len(part) / 10)}
    cpu = {who: [(row[0], row[2] / 1000) for row in rows] for who, rows in last["rows"].items()}
    count = {who: [(row[0], row[1]) for row in rows] for who, rows in last["rows"].items()}
    late = {who: windowed(requests, span, 15, p95) for who, requests in last["requests"].items()}
    draw([("requests per second", load, room(load), ""), ("CPU reserved, cores", cpu, room(cpu), ""),
          ("replicas", count, 4.5, "", (0, 1, 2, 3, 4)),
          (f"p95 of 15 s, goal {GOAL_MS} ms for p99", late, 1000, " ms", None, GOAL_MS)], span, names, colors, file)


def draw(panels, span, names, colors, file):
    height = len(panels) * (PANEL + GAP) + 56
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH + 20} {height}" font-family="sans-serif">',
             '<style>.t{font-size:13px}.n{font-size:11px;text-anchor:end}.m{font-size:11px;text-anchor:middle}'
             '.s{font-size:11px}'
             '.a{stroke:#999;fill:none}.g{stroke:#e4e4e4}.goal{stroke:#444;stroke-dasharray:6 4}</style>',
             f'<rect width="{PLOT_WIDTH + 20}" height="{height}" fill="white"/>']
    for number, (title, series, most, unit, *more) in enumerate(panels):
        parts += panel(30 + number * (PANEL + GAP), title, series, most, span, unit, colors, *more)
    parts += minutes(30 + len(panels) * (PANEL + GAP) - GAP, span)
    for number, (who, name) in enumerate(names.items()):
        parts.append(f'<text x="{LEFT + 160 * number}" y="{height - 12}" class="t" fill="{colors[who]}">— {name}</text>')
    (ROOT / "docs/images" / file).write_text("\n".join(parts) + "\n</svg>\n")


def rounds_and_length(rounds):
    """As "2 rounds of 8 minutes each on 2026-01-31"."""
    length_s = max(row[0] for rows in rounds[-1]["rows"].values() for row in rows)
    count = f"{len(rounds)} rounds" if len(rounds) > 1 else "1 round"
    return f"{count} of {length_s / 60:.0f} minutes each on {time.strftime('%Y-%m-%d')}"


# --- getting ready ---------------------------------------------------------------------------------
def prepare():
    """False, said on stdout, where there are no real pods."""
    OUT.mkdir(parents=True, exist_ok=True)
    harness.OUT.mkdir(parents=True, exist_ok=True)
    if not harness.has_real_node():
        print("side-by-side: skipped: real pods are needed, and the cluster has none")
        return False
    harness.install_crds()
    harness.kubectl("apply", "-f", ROOT / "deploy/rbac.yaml")
    harness.cluster("load-image", harness.BUILD / "function.tar")
    return True
