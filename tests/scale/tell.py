"""What was measured, as a table, as lines of build/bench.json, and as docs/scale.md with a plot."""
import json

from place import OUT, ROOT

ROWS = (
    ("memory, MiB", "rss_mib", "{:.1f}"), ("the most it ever was, MiB", "rss_most_mib", "{:.1f}"),
    ("CPU s per minute", "cpu_s_per_min", "{:.2f}"), ("decisions per minute", "decisions_per_min", "{:.0f}"),
    ("CPU ms per decision", "cpu_ms_per_decision", "{:.3f}"), ("a pass, s", "pass_s", "{:.2f}"),
    ("CPU s per pass", "pass_cpu_s", "{:.2f}"), ("requests to the API server per minute", "kube_requests_per_min", "{:.0f}"),
    ("queries to Prometheus per pass", "queries_per_pass", "{:.0f}"),
    ("start to first decisions, s", "start_to_first_decision_s", "{:.1f}"))
NAMES = {"ours": "faasrl-mpa", "hpa": "HPA controller", "vpa": "VPA recommender"}


def kept():
    """Size to party to figures, the smallest first."""
    return {int(path.stem): json.loads(path.read_text())
            for path in sorted(OUT.glob("[0-9]*.json"), key=lambda p: int(p.stem))}


def cell(found, key, form):
    value = (found or {}).get(key)
    return "–" if value is None else form.format(value)


def table(sizes):
    lines = ["| MPAs | | " + " | ".join(NAMES.values()) + " |", "|---|---|" + "---|" * len(NAMES)]
    for size, found in sizes.items():
        for label, key, form in ROWS:
            lines.append(f"| {size:,} | {label} | " + " | ".join(cell(found.get(n), key, form) for n in NAMES) + " |")
        for key, label in (("p50_s", "p50"), ("p99_s", "p99")):
            lines.append(f"| {size:,} | a figure changes until the write, {label}, s | " + " | ".join(
                cell(found.get(n, {}).get("reaction"), key, "{:.1f}") for n in NAMES) + " |")
    return "\n".join(lines)


# --- build/bench.json ------------------------------------------------------------------------------
def line(name, value, unit, goal=None, peer=None, peer_value=None):
    return {"name": name, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value,
            "ratio": peer_value / value if peer else None, "goal": goal}


def largest(sizes, *who):
    both = [size for size, found in sizes.items() if all(name in found for name in who)]
    return (max(both), sizes[max(both)]) if both else (None, None)


def of_one(size, found):
    short = f"{size // 1000}k" if size % 1000 == 0 else str(size)
    full = size == 10000
    return [line(f"rss_{short}_mpa_mib", found["rss_mib"], "MiB", goal=64 if full else None),
            line(f"pass_{short}_cpu_s", found["pass_cpu_s"], "s", goal=1 if full else None),
            line(f"pass_{short}_s", found["pass_s"], "s", goal=15 if full else None)]


def figures(sizes):
    lines = [f for size, found in sizes.items() if "ours" in found for f in of_one(size, found["ours"])]
    size, found = largest(sizes, "ours", "hpa")
    if size:
        lines.append(line("hpa_cpu_per_object", found["ours"]["cpu_ms_per_decision"], "ms", 20,
                          f"HPA controller, {size} objects", found["hpa"]["cpu_ms_per_decision"]))
    size, found = largest(sizes, "ours", "vpa")
    if size:
        lines.append(line("vpa_rss", found["ours"]["rss_mib"], "MiB", 10, f"VPA recommender, {size} objects",
                          found["vpa"]["rss_mib"]))
    return lines


def write_bench(lines):
    """The other lines of the file stay."""
    path = ROOT / "build/bench.json"
    new = {f["name"] for f in lines}
    others = [f for f in json.loads(path.read_text()) if f["name"] not in new] if path.exists() else []
    path.write_text(json.dumps(others + lines, indent=2) + "\n")


def everything(docs):
    sizes = kept()
    print(table(sizes))
    lines = figures(sizes)
    for f in lines:
        beside = f"  {f['peer']}: {f['peer_value']:.3f}, ratio {f['ratio']:.1f}" if f["peer"] else ""
        print(f"{f['name']:<24} {f['value']:10.3f} {f['unit']:<4} goal {f['goal']}{beside}")
    write_bench(lines)
    if docs:
        import page
        page.write(sizes, table(sizes))
