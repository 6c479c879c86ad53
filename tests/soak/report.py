"""What a soak came to: the verdict, a table, and docs/soak.md with a plot."""
from statistics import median

import churn
import objects
import plot
import rule
from place import ROOT

NAMES = {"rss_mib": "resident memory, MiB", "descriptors": "descriptors"}
COLOR, WARM_UP_COLOR = "#1f77b4", "#bbbbbb"
LEAST_PART = 0.5  # of what was to happen; else the machine was too slow for the result to say anything

BACK = ", and with it the function is set back to two replicas"

TEXT = """<!-- Written by `make soak SOAK=--docs`. -->
# Does it grow?

`make soak` runs the controller for an hour (`SOAK_SECONDS`) while all around it comes and goes, on a real API server with fake
nodes and pods ([kwok](https://kwok.sigs.k8s.io)) and with a real Prometheus that scrapes [generated series](scale.md):

- each pod is deleted within {round} s, in an order that follows from the seed, and its ReplicaSet makes another;
- each MPA is deleted after {life} s on average, and {gap} s later its function gets a new one, half of them by a name
  that was never there{back};
- one function in {busy} has {factor} times its load for {round} s, others each time;
- the journal begins a new file at each MiB.

The controller has `threshold` and its defaults, but `--leader-elect=false`, as a busy machine would lose the lease now and
then. Each {sample} s its resident memory and descriptors are read from `/proc`. After a quarter of the time the rule of
`tests/soak/rule.py` begins: both what the line of least squares gains from there to the end, and what the median of the last
quarter of it is above that of its first, must be at most {memory} MiB ({part:.0f} % of the median where that is more) and
{descriptors} descriptors. `make soak-test` has the rule tell series that leak from such that do not, and finds the leaks of a
real process. Where fewer than half of the deletions or passes that were due took place, it fails, too.
What is not shown yet stands in [reliability](reliability.md#how-it-is-tried).

## What came of it

**{minutes:.0f} minutes**{short}: {mpas:,} MPAs with two pods each at first, seed {seed}; {when}, {machine}, load of the machine
{load_least:.1f} to {load_most:.1f}, median {load:.1f}, all of it with `nice -n {nice}`.

{table}

{done}

{verdict}

![memory and descriptors over time, the warm-up in grey](images/soak.svg)
"""


def points(found, name):
    return [(s["second"], s[name]) for s in found["samples"]]


def verdicts(found):
    return {name: rule.judge(name, points(found, name)) for name in rule.BOUNDS}


def table(judged):
    lines = ["| after the warm-up | " + " | ".join(NAMES[n] for n in judged) + " |", "|---|" + "---|" * len(judged)]
    for label, key, form in (("median of its first quarter", "first", "{:.2f}"),
                             ("median of its last quarter", "last", "{:.2f}"),
                             ("gained, by quarters", "by_quarters", "{:+.2f}"), ("gained, by the line", "by_line", "{:+.2f}"),
                             ("may gain", "bound", "{:.2f}"), ("most, warm-up included", "most", "{:.2f}")):
        lines.append(f"| {label} | " + " | ".join(form.format(j[key]) for j in judged.values()) + " |")
    return "\n".join([*lines, "| flat | " + " | ".join("yes" if j["flat"] else "**no**" for j in judged.values()) + " |"])


# --- did anything happen? --------------------------------------------------------------------------
def due(found):
    return {"pods deleted": median(s["pods"] for s in found["samples"]) * found["seconds"] / churn.ROUND_S,
            "MPAs deleted": found["mpas"] * found["seconds"] / churn.MPA_LIFE_S}


def gained(found, name, since=0.0):
    """From that part of the time on."""
    first = next(s for s in found["samples"] if s["second"] >= since * found["samples"][-1]["second"])
    return found["samples"][-1][name] - first[name]


def idle(found):
    """What was too little for the result to say anything."""
    wrong = [f"{what}: {found['done'][what]} of {most:.0f}" for what, most in due(found).items()
             if found["done"][what] < LEAST_PART * most]
    for what, seen in (("mpas", "MPAs followed"), ("pods", "pods in the cache")):
        least = LEAST_PART * found["mpas"] * (objects.PODS if what == "pods" else 1)
        if median(s[what] for s in found["samples"]) < least:
            wrong.append(f"{seen}: fewer than {least:.0f} most of the time")
    passes = found["seconds"] / 15
    if gained(found, "passes") < LEAST_PART * passes:
        wrong.append(f"passes: {gained(found, 'passes'):.0f} of {passes:.0f}")
    return wrong


def done(found):
    pods, ended, made = (found["done"][what] for what in ("pods deleted", "MPAs deleted", "MPAs made"))
    there, part = median(s["pods"] for s in found["samples"]), pods / due(found)["pods deleted"]
    return (f"{pods:,} pods deleted ({100 * part:.0f} % of {there:.0f} in each {churn.ROUND_S} s), {ended:,} MPAs deleted and "
            f"{made:,} made;\n{gained(found, 'passes'):,.0f} passes, {gained(found, 'writes'):,.0f} writes of status, "
            f"{gained(found, 'rescales'):,.0f} of replicas,\nof which {gained(found, 'rescales', rule.WARM_UP):,.0f} after the "
            f"warm-up. The controller took "
            f"{found['cpu_s'] * 60 / found['seconds']:.2f} s of CPU a minute.")


def seen(found, judged):
    """The largest leak that could go unseen."""
    memory = judged["rss_mib"]
    part = memory["seconds"] / found["seconds"]
    pods, mpas = (max(1, found["done"][what] * part) for what in ("pods deleted", "MPAs deleted"))
    per = memory["bound"] * 2**20
    return (f"In the time that is judged, a leak of {per / pods:.0f} bytes for each pod that is replaced, or of\n"
            f"{per / mpas:,.0f} for each MPA that is deleted, adds the {memory['bound']:.2f} MiB that are allowed.")


# --- docs/soak.md ----------------------------------------------------------------------------------
def svg(found):
    warm = rule.WARM_UP * points(found, "descriptors")[-1][0]
    panels = []
    for name, label in NAMES.items():
        line = [(x / 60, y) for x, y in points(found, name)]
        panels.append((label, {WARM_UP_COLOR: [p for p in line if p[0] * 60 < warm],
                               COLOR: [p for p in line if p[0] * 60 >= warm]}))
    return plot.svg(panels, found["samples"][-1]["second"] / 60, {WARM_UP_COLOR: "warm-up", COLOR: "judged"}, "minutes",
                    dots=False)


def write(found, judged):
    loads = [s["load"] for s in found["samples"]]
    (ROOT / "docs/images/soak.svg").write_text(svg(found))
    (ROOT / "docs/soak.md").write_text(TEXT.format(
        round=churn.ROUND_S, back=BACK if found.get("set_back") else "", busy=churn.BUSY_PART, factor=churn.BUSY_FACTOR,
        life=churn.MPA_LIFE_S, gap=churn.MPA_GAP_S, sample=found["sample_s"],
        memory=rule.BOUNDS["rss_mib"]["least"], part=100 * rule.BOUNDS["rss_mib"]["part"],
        descriptors=rule.BOUNDS["descriptors"]["least"], load=median(loads), load_least=min(loads), load_most=max(loads),
        minutes=found["seconds"] / 60, short="" if found["seconds"] >= 3600 else ", shorter than its hour", table=table(judged),
        done=done(found), verdict=seen(found, judged), **{k: found[k] for k in ("when", "machine", "nice", "mpas", "seed")}))


def everything(found, docs):
    """0 where it is flat; else what is wrong, in words."""
    judged = verdicts(found)
    print(f"{table(judged)}\n\n{done(found)}\n{seen(found, judged)}")
    if docs:
        write(found, judged)
    wrong = [f"{NAMES[n]}: gained {max(j['by_line'], j['by_quarters']):.2f}, may {j['bound']:.2f}"
             for n, j in judged.items() if not j["flat"]]
    wrong += [f"too little happened: {what}" for what in idle(found)]
    return "soak: " + "; ".join(wrong) if wrong else 0
