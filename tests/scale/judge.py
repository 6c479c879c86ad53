"""What `make bench-scale` makes of what it saw: which figures count, when a function was acted on, and which goals are kept.
Nothing in here needs a cluster."""
import math
import time

SCRAPE_S = 15
POLL_S = 5  # at which a party is asked whether it is ready; asked more often, that would be measured
HPA_ERRORS = 0.01  # of its reconciliations
FULL = 10000  # the goals are about that many MPAs

# --- is it whole? ----------------------------------------------------------------------------------


def of_ours(size, found):
    least = (found["passes"] - 1) * size  # one pass may lie across the edge of the interval
    if not found["passes"] or found["decisions"] < max(least, 1):
        yield f"{found['decisions']:.0f} decisions in {found['passes']:.0f} passes over {size}"
    if found["ready"] != size:
        yield f"{found['ready']:.0f} of {size} MPAs are Ready"
    if found["queries_failed"]:
        yield f"{found['queries_failed']:.0f} queries to Prometheus failed"
    if found["metrics_dropped"]:
        yield f"{found['metrics_dropped']:.0f} samples were left out"


def of_hpa(_, found):
    if not found["decisions"]:
        yield "no reconciliation"
    elif found["failed"] > HPA_ERRORS * found["decisions"]:
        yield f"{found['failed']:.0f} of {found['decisions']:.0f} reconciliations ended with an error"


def of_vpa(_, found):
    if not found["decisions"]:
        yield "no loop"


WHOLE = {"ours": of_ours, "hpa": of_hpa, "vpa": of_vpa}


def broken(name, size, found):
    """Why what was found of a party does not count, in words; empty: nothing is known against it."""
    return list(WHOLE[name](size, found))


# --- from a metric to the patch ----------------------------------------------------------------------
STEPPED_PART = 100  # one function in so many gets more load, to see when it is acted on
STEPS = 5  # other functions each time, each time at another moment of the interval and of the scrape
STEP_GAP_S = SCRAPE_S + SCRAPE_S / STEPS
STEP_FACTOR = 1.6
STEP_WAIT_S = 600
WAVE_PART = 10  # as feed/fleet.go has it


def waves(app):
    """Whether the feed changes its load by itself, by FNV-1a of its name."""
    value = 0x811C9DC5
    for byte in app.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value % WAVE_PART == 0


def plan(apps):
    """Those that get more load, a list for each step."""
    steady = [app for app in apps if not waves(app)]
    count = min(len(steady), max(20, len(apps) // STEPPED_PART))
    chosen = [steady[i * len(steady) // count] for i in range(count)]
    return [chosen[i::STEPS] for i in range(STEPS)]


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


def first_writes(entries, began):
    """Function to seconds from the change of its load to the first write after it, of those that had one in time."""
    first = {}
    for entry in entries:
        app = acted_on(entry)
        if app not in began:
            continue
        seconds = moment(entry["requestReceivedTimestamp"]) - began[app]
        if 0 <= seconds <= STEP_WAIT_S:
            first[app] = min(seconds, first.get(app, math.inf))
    return first


def quantile(reaction, q):
    """Over all whose load changed: who was not acted on took for ever."""
    if not (reaction or {}).get("stepped"):
        return None
    took = sorted(reaction["took_s"])
    at = min(reaction["stepped"] - 1, int(q * reaction["stepped"]))
    return took[at] if at < len(took) else math.inf


# --- the goals ---------------------------------------------------------------------------------------
METRICS = 4  # latency, CPU, throttling, memory
EVERY_S = 15.3  # 15, and what the ends of the first and the last pass differ by


def line(name, value, unit, goal=None, peer=None, peer_value=None):
    return {"name": name, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value,
            "ratio": peer_value / value if peer else None, "goal": goal}


def counting(sizes, *who):
    """Sizes at which all of these were measured and are whole."""
    return {size: found for size, found in sizes.items()
            if all(name in found and not found[name].get("broken") for name in who)}


def of_one(size, found):
    short = f"{size // 1000}k" if size % 1000 == 0 else str(size)
    full = size == FULL
    return [line(f"rss_{short}_mpa_mib", found["rss_mib"], "MiB", goal=64 if full else None),
            line(f"pass_{short}_cpu_s", found["pass_cpu_s"], "s", goal=1 if full else None),
            line(f"pass_{short}_s", found["pass_s"], "s", goal=15 if full else None),
            line(f"decided_every_{short}_s", found["pass_every_s"], "s", goal=EVERY_S if full else None),
            line(f"queries_per_pass_{short}", found["queries_per_pass"], "", goal=METRICS)]


def beside(sizes, other, name, key, unit, goal, words):
    both = counting(sizes, "ours", other)
    if not both:
        return []
    size = max(both)
    return [line(name, both[size]["ours"][key], unit, goal, f"{words}, {size} objects", both[size][other][key])]


def figures(sizes):
    lines = [f for size, found in counting(sizes, "ours").items() for f in of_one(size, found["ours"])]
    lines += beside(sizes, "hpa", "hpa_cpu_per_object", "cpu_ms_per_decision", "ms", 20, "HPA controller")
    return lines + beside(sizes, "vpa", "vpa_rss", "rss_mib", "MiB", 10, "VPA recommender")


def kept(figure):
    """Beside a peer the goal is how many times as much that takes."""
    return figure["ratio"] >= figure["goal"] if figure["peer"] else figure["value"] <= figure["goal"]


def missed(sizes, lines):
    """The goals that are not kept, in words; what was not measured is not kept."""
    wrong = [f"{f['name']} is {f['ratio'] if f['peer'] else f['value']:.3f}, the goal is {f['goal']}"
             for f in lines if f["goal"] is not None and not kept(f)]
    if FULL not in counting(sizes, "ours"):
        wrong.append(f"no figures at {FULL:,} MPAs that count")
    there = {f["name"] for f in lines}
    return wrong + [f"{name}: no figures that count" for name in ("hpa_cpu_per_object", "vpa_rss") if name not in there]
