"""Where the measurement happens: a cluster of fake nodes of its own, beside any other on this machine. What uses it in
another place than build/scale sets SCALE_NAME and SCALE_PORT first."""
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = os.environ.get("SCALE_NAME", "scale")
OUT = ROOT / "build" / NAME
FIRST_PORT = int(os.environ.get("SCALE_PORT", "27000"))
PORT_NAMES = re.findall(r"^(PORT_\w+)=", (ROOT / "tests/cluster/lib/env.sh").read_text(), re.M)
PORTS = {name: FIRST_PORT + i for i, name in enumerate((*PORT_NAMES, "FEED", "METRICS_API", "HPA", "VPA", "CONTROLLER"))}

# Before the harness is loaded, which reads them.
os.environ.update({f"FAASRL_{name}": str(PORTS[name]) for name in PORT_NAMES})
os.environ.update(FAASRL_CLUSTER_DIR=str(OUT / "cluster"), FAASRL_CLUSTER_NODE="kwok",
                  FAASRL_CONTROLLER_MANAGER_FLAGS="--controllers=*,-horizontal-pod-autoscaler-controller "
                                                  "--kube-api-qps=1000 --kube-api-burst=2000 "
                                                  "--concurrent-deployment-syncs=10 --concurrent-replicaset-syncs=10")
sys.path.insert(0, str(ROOT / "tests/e2e"))
import harness  # noqa: E402  (its place is only known now)

API = f"https://127.0.0.1:{PORTS['PORT_API']}"
PKI = harness.RUN / "pki"
CLUSTER = ROOT / "tests/cluster/cluster"


def built(name):
    """A program of tests/cluster/build; the first time that takes minutes."""
    done = subprocess.run([ROOT / "tests/cluster/build", name], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


def up():
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([CLUSTER, "up"], check=True)
    harness.install_crds()
    harness.kubectl("apply", "-f", ROOT / "deploy/rbac.yaml")


def down():
    subprocess.run([CLUSTER, "down"], check=True)


def background(name, *argv):
    """A process of ours that ends with us, logging to NAME.log of this place."""
    with open(OUT / f"{name}.log", "ab") as log:
        return subprocess.Popen([str(a) for a in argv], stdout=log, stderr=log, env=harness.ENV,
                                preexec_fn=harness.die_with_parent)


def machine():
    with open("/proc/cpuinfo") as file:
        named = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {named[0] if named else platform.machine()}"
