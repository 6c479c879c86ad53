"""What was measured, as a table, as lines of build/bench.json, and as docs/scale.md with a plot."""
import json
import math

import judge
from place import OUT, ROOT

ROWS = (
    ("memory, MiB", "rss_mib", "{:.1f}"), ("the most it ever was, MiB", "rss_most_mib", "{:.1f}"),
    ("CPU s per minute", "cpu_s_per_min", "{:.2f}"), ("decisions per minute", "decisions_per_min", "{:.0f}"),
    ("CPU ms per decision", "cpu_ms_per_decision", "{:.3f}"), ("a pass, s", "pass_s", "{:.2f}"),
    ("CPU s per pass", "pass_cpu_s", "{:.2f}"), ("requests to the API server per minute", "kube_requests_per_min", "{:.0f}"),
    ("queries to Prometheus per pass", "queries_per_pass", "{:.0f}"),
    ("requests to Prometheus per minute", "queries_per_min", "{:.0f}"),
    ("start to first decisions, s", "start_to_first_decision_s", "{:.1f}"))
NAMES = {"ours": "faasrl-mpa", "hpa": "HPA controller", "vpa": "VPA recommender"}


def kept():
    """Size to party to figures, the smallest first."""
    return {int(path.stem): json.loads(path.read_text())
            for path in sorted(OUT.glob("[0-9]*.json"), key=lambda p: int(p.stem))}


def written(value, form):
    if value is None:
        return "–"
    return f"over {judge.STEP_WAIT_S}" if value == math.inf else form.format(value)


def rows():
    """Words, and what gives a party's figure in them."""
    for label, key, form in ROWS:
        yield label, lambda f, key=key, form=form: written(f.get(key), form)
    yield "functions acted on, of those whose load changed", acted
    for label, q in (("p50", 0.5), ("p99", 0.99)):
        yield (f"a figure changes until the write, {label}, s",
               lambda f, q=q: written(judge.quantile(f.get("reaction"), q), "{:.1f}"))


def acted(found):
    reaction = found.get("reaction")
    return f"{len(reaction['took_s'])} of {reaction['stepped']}" if reaction else "–"


def table(sizes):
    lines = ["| MPAs | | " + " | ".join(NAMES.values()) + " |", "|---|---|" + "---|" * len(NAMES)]
    for size, found in sizes.items():
        if any(f.get("broken") for f in found.values()):
            lines.append(f"| {size:,} | **does it count?** | " + " | ".join(counts(found.get(n)) for n in NAMES) + " |")
        for label, cell in rows():
            lines.append(f"| {size:,} | {label} | " + " | ".join(
                cell(found[n]) if n in found else "–" for n in NAMES) + " |")
    return "\n".join(lines)


def counts(found):
    if not found:
        return "–"
    return f"**broken**: {'; '.join(found['broken'])}" if found.get("broken") else "yes"


def broken(sizes):
    return [f"{size:,} {NAMES[name]}: {why}" for size, found in sizes.items() for name in NAMES if name in found
            for why in found[name].get("broken", [])]


# --- build/bench.json ------------------------------------------------------------------------------
def write_bench(lines):
    """The other lines of the file stay."""
    path = ROOT / "build/bench.json"
    new = {f["name"] for f in lines}
    others = [f for f in json.loads(path.read_text()) if f["name"] not in new] if path.exists() else []
    path.write_text(json.dumps(others + lines, indent=2) + "\n")


def everything(docs, check):
    """What is wrong with it, in words: runs that do not count and, where that is asked for, goals that are not kept."""
    sizes = kept()
    print(table(sizes))
    lines = judge.figures(sizes)
    for f in lines:
        beside = f"  {f['peer']}: {f['peer_value']:.3f}, ratio {f['ratio']:.1f}" if f["peer"] else ""
        print(f"{f['name']:<24} {f['value']:10.3f} {f['unit']:<4} goal {f['goal']}{beside}")
    write_bench(lines)
    if docs:
        import page
        page.write(sizes, table(sizes))
    return broken(sizes) + (judge.missed(sizes, lines) if check else [])
