"""What the tests of mpactl simulate and compare stand on: the program, and workloads made for them."""
import csv
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "report"
MPACTL = ROOT / os.environ.get("MPACTL", "build/mpactl")
KEYS = ["trace", "function", "recommender", "requests", "violation_ratio", "p99_ms", "goal_ms",
        "cpu_core_seconds", "cpu_utilization", "replicas_mean", "actions", "cost_vs_oracle"]
MEMORY_KEYS = ["memory_gib_seconds", "memory_utilization", "memory_kills"]  # where an MPA sets memory

STEADY = "poisson:rate=20,span=1800"
BURSTY = "bursty:rate=10,burst=8,every=600,length=60,span=1800"
DAY = "diurnal:rate=60,amplitude=0.8,period=3600,span=3600"

MANIFEST = """
apiVersion: autoscaling.faasrl.io/v1alpha1
kind: MultidimPodAutoscaler
metadata: {name: tried}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: tried}
  goals: {latency: {percentile: 95, target: 123ms}}
  constraints:
    global: {minReplicas: 2, maxReplicas: 3}
    containerControlledResources: [cpu]
    container:
    - {name: '*', requests: {minAllowed: {cpu: 250m}, maxAllowed: {cpu: 500m}}}
"""


def memory_manifest(least, most, resources="cpu, memory"):
    """The same MPA, which sets memory too."""
    return (MANIFEST.replace("[cpu]", f"[{resources}]")
            .replace("{cpu: 250m}", f"{{cpu: 250m, memory: {least}}}")
            .replace("{cpu: 500m}", f"{{cpu: 500m, memory: {most}}}"))


def run(*argv, program=MPACTL):
    return subprocess.run([program, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)


def compare(tmp_path, *argv, command="compare"):
    """The objects of --json."""
    out = tmp_path / "out.json"
    done = run(command, *argv, "--json", out)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(out.read_text())


def traces(*specifications):
    return [word for s in specifications for word in ("--trace", s)]


def recommenders(*names):
    return [word for n in names for word in ("--recommender", n)]


def azure(directory, functions, minutes=30, memory=None):
    """A trace in Azure's form: functions as (name, requests of each minute, milliseconds); memory by name, in MiB."""
    invocations, durations = directory / "invocations.csv", directory / "durations.csv"
    shares = [0, 1, 25, 50, 75, 99, 100]
    with invocations.open("w", newline="") as i, durations.open("w", newline="") as d:
        i, d = csv.writer(i), csv.writer(d)
        i.writerow(["HashOwner", "HashApp", "HashFunction", "Trigger", *range(1, minutes + 1)])
        d.writerow(["HashOwner", "HashApp", "HashFunction", "Average", "Count", "Minimum", "Maximum",
                    *(f"percentile_Average_{s}" for s in shares)])
        for name, count, ms in functions:
            i.writerow(["owner", "app", name, "http", *[count] * minutes])
            d.writerow(["owner", "app", name, ms, count * minutes, ms, ms, *[ms] * len(shares)])
    if memory is None:
        return f"azure:{invocations},{durations}"
    (directory / "memory.csv").write_text("HashOwner,HashApp,HashFunction,AverageAllocatedMb_pct50\n" + "".join(
        f"owner,app,{name},{mib}\n" for name, mib in memory.items()))
    return f"azure:{invocations},{durations},{directory}/memory.csv"
