"""What the end-to-end tests stand on: kubectl, a controller that runs from a kubeconfig under its own
service account, load, the audit log. Everything is real; a test that needs real pods skips with a
message where there are none."""
import contextlib
import ctypes
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = Path(os.environ.get("FAASRL_CLUSTER_DIR", ROOT / "build" / "cluster"))
BUILD = ROOT / "build"
OUT = BUILD / "e2e"
KUBECONFIG = RUN / "kubeconfig"
PROMETHEUS = f"http://127.0.0.1:{os.environ.get('FAASRL_PORT_PROMETHEUS', '19090')}"
CONTROLLER = ROOT / os.environ.get("CONTROLLER", "build/faasrl-mpa")
SERVICE_ACCOUNT = "system:serviceaccount:faasrl-mpa:faasrl-mpa"
ENV = dict(os.environ, KUBECONFIG=str(KUBECONFIG), PATH=f"{RUN}/bin:{BUILD}:{os.environ['PATH']}")

# Seconds-scale, so that a test sees in a minute what takes ten in production.
FAST = ["--interval=3s", "--window=10s", "--status-interval=3s", "--resize-cooldown=5s",
        "--history=0s", "--learn-history=0s", "--prometheus-timeout=2s"]


def run(*argv, stdin=None, check=True, timeout=120):
    done = subprocess.run([str(a) for a in argv], input=stdin, text=True, env=ENV, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done


def kubectl(*argv, stdin=None, check=True):
    return run("kubectl", *argv, stdin=stdin, check=check)


def cluster(*argv, timeout=300):
    return run(ROOT / "tests/cluster/cluster", *argv, timeout=timeout).stdout


def get(kind, name, namespace):
    return json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)


def listing(kind, namespace, *argv):
    return json.loads(kubectl("get", kind, "-n", namespace, "-o", "json", *argv).stdout)["items"]


def columns(text):
    """One row of a kubectl table: column to value, by the positions of the header."""
    header, row = text.splitlines()
    starts = [(m.group(), m.start()) for m in re.finditer(r"\S+", header)]
    ends = [start for _, start in starts[1:]] + [None]
    return {name: row[start:end].strip() for (name, start), end in zip(starts, ends)}


def apply(text, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=text)


namespaces = itertools.count()


@contextlib.contextmanager
def new_namespace():
    name = f"e2e-{os.getpid()}-{next(namespaces)}"  # those of a run before may still be going
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "faasrl-e2e=true")
    try:
        yield name
    finally:
        # At once: the next test's controller would still speak of an MPA in a namespace that is going.
        kubectl("delete", "mpa", "--all", "-n", name)
        kubectl("delete", "namespace", name, "--wait=false")
        # A queue-proxy of Knative would drain for minutes, and its pod's CPU is not there for the next test.
        kubectl("delete", "pods", "--all", "-n", name, "--grace-period=1", "--wait=false")


@contextlib.contextmanager
def api_proxy():
    """The API at a local address, for many requests in a short time."""
    with local_port("proxy", "--port=0") as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def local_port(*command):
    """The port of 127.0.0.1 at which this command of kubectl serves, which says so in its first line."""
    process = subprocess.Popen(["kubectl", *command], stdout=subprocess.PIPE, text=True, env=ENV,
                               preexec_fn=die_with_parent)
    try:
        line = process.stdout.readline()
        address = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert address, f"kubectl {command[0]} said: {line!r}"
        yield int(address[1])
    finally:
        process.terminate()
        process.wait()


def post(url, body):
    """The HTTP status and the answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def install_crds():
    """Forced, as it may be Helm's from a test of the chart."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", ROOT / "crds")


def wait(what, probe, timeout=60, every=0.5):
    """Until probe gives something true; that is returned. Says what was awaited if it never comes."""
    deadline = time.monotonic() + timeout
    value = probe()
    while not value:
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(every)
        value = probe()
    return value


def has_real_node():
    return "node: real" in cluster("status")


def die_with_parent():
    """A test run that is killed must not leave a controller behind that goes on scaling."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


# --- the function that is scaled -------------------------------------------------------------------
FUNCTION = (ROOT / "tests/functions/deployment.yaml").read_text()
EXAMPLE = (ROOT / "deploy/examples/mpa.yaml").read_text()


def deploy_function(namespace, replicas=1):
    apply(FUNCTION.replace("replicas: 1", f"replicas: {replicas}", 1), namespace)
    rolled_out = kubectl("rollout", "status", "deployment/primes", "-n", namespace, "--timeout=90s", check=False)
    assert rolled_out.returncode == 0, f"{rolled_out.stderr}{why_pods_are_not_ready(namespace)}"


def why_pods_are_not_ready(namespace):
    return "".join(kubectl(*words, check=False).stdout for words in (
        ("get", "nodes"), ("get", "pods", "-A", "-o", "wide"), ("get", "events", "-n", namespace)))


def function_url(namespace, path="/sentiment?n=1500"):
    ip = get("service", "primes", namespace)["spec"]["clusterIP"]
    return f"http://{ip}{path}"


def listens(request):
    """A service learns of its pods a little later than the API server does: until then it refuses connections."""
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return False
        raise
    return True


def call_of(cpu_ms, url, host=None):
    """The path of a call that takes so much CPU on this machine: machines differ, and one is not equally fast at all times."""
    n, costs = 1500, []
    request = urllib.request.Request(f"{url}/sentiment?n={n}", headers={"Host": host} if host else {})
    wait("somebody listens", lambda: listens(request), 30)
    for _ in range(5):
        with urllib.request.urlopen(request, timeout=60) as answer:
            costs.append(float(re.match(r"cpu;dur=([0-9.]+)", answer.headers["Server-Timing"])[1]))
    return f"/sentiment?n={round(n * cpu_ms / statistics.median(costs))}"


def pods(namespace):
    return [p for p in listing("pods", namespace, "-l", "app=primes")
            if "deletionTimestamp" not in p["metadata"]]


def cpu_requests(namespace):
    """What the kubelet says is in force, in milli-cores."""
    found = []
    for pod in pods(namespace):
        for status in pod["status"].get("containerStatuses", []):
            text = status.get("resources", {}).get("requests", {}).get("cpu")
            if text:
                found.append(int(text[:-1]) if text.endswith("m") else int(float(text) * 1000))
    return found


def restarts(namespace):
    return sum(s["restartCount"] for p in pods(namespace)
               for s in p["status"].get("containerStatuses", []))


def replicas(namespace):
    return get("deployment", "primes", namespace)["spec"]["replicas"]


def mpa(namespace, name="primes"):
    return get("mpa", name, namespace)


def condition(namespace, kind, name="primes"):
    for c in mpa(namespace, name).get("status", {}).get("conditions", []):
        if c["type"] == kind:
            return c
    return {}


def condition_is(namespace, kind, status, reason=None, name="primes"):
    c = condition(namespace, kind, name)
    return c if c.get("status") == status and reason in (None, c.get("reason")) else None


def events(namespace):
    return [(e["reason"], e["message"]) for e in listing("events", namespace)
            if e["involvedObject"]["kind"] == "MultidimPodAutoscaler"]


class Load:
    """Open-loop load in the background; `with Load(url, "20@60s"): …`."""

    def __init__(self, url, trace, *flags):
        self.log = open(OUT / f"load-{int(time.time() * 1000)}.log", "w+")
        self.process = subprocess.Popen(
            [str(BUILD / "load"), "--target", url, "--trace", trace, "--json", *flags],
            stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=20)
        self.log.close()

    def summary(self):
        self.process.wait(timeout=600)
        self.log.seek(0)
        return json.loads(self.log.read().strip().splitlines()[-1])


# --- the controller ------------------------------------------------------------------------------------
def token(account="faasrl-mpa", namespace="faasrl-mpa"):
    return kubectl("create", "token", account, "-n", namespace, "--duration=1h").stdout


class Controller:
    """The controller as a process on this machine, under the service account of deploy/rbac.yaml or
    another (its name and namespace)."""

    def __init__(self, name, *flags, binary=None, wrapper=(), server=None, prometheus=PROMETHEUS,
                 fast=True, account=("faasrl-mpa", "faasrl-mpa")):
        OUT.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.token_file = OUT / f"{name}.token"
        self.token_file.write_text(token(*account))
        self.log_file = OUT / f"{name}.log"
        admin = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
        where = dict(admin["clusters"][0]["cluster"])
        if server:
            where["server"] = server
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "clusters": [{"name": "c", "cluster": where}],
                  "users": [{"name": "u", "user": {"tokenFile": str(self.token_file)}}],
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u",
                                                         "namespace": account[1]}}]}
        self.kubeconfig = OUT / f"{name}.kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        if not any(flag.startswith("--listen") for flag in flags):
            flags = ("--listen=off", *flags)  # several run at a time
        if not any(flag.startswith("--policy") for flag in flags):
            flags = (f"--policy={ROOT}/build/policy", *flags)  # beside a sanitized build there is none
        self.argv = [*wrapper, str(binary or CONTROLLER), f"--kubeconfig={self.kubeconfig}",
                     f"--prometheus-url={prometheus}", "--log-level=debug",
                     *(FAST if fast else ()), *flags]
        self.process = None

    def launch(self):
        """Starts it without waiting until it leads."""
        env = dict(ENV, ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=99",
                   UBSAN_OPTIONS="print_stacktrace=1")
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdout=log, stderr=log, env=env,
                                            preexec_fn=die_with_parent)
        return self

    def start(self):
        self.launch()
        sign = "a pass is done" if "--leader-elect=false" in self.argv else "this replica leads"
        wait(f"{self.name} leads", lambda: self.alive() and sign in self.log(), 40)
        return self

    def alive(self):
        assert self.process.poll() is None, f"{self.name} ended by itself:\n{self.log()[-4000:]}"
        return True

    def log(self):
        return self.log_file.read_text(errors="replace")

    def stop(self):
        """Ends it as Kubernetes would; a sanitizer's report or a leak makes the exit code non-zero."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            code = self.process.wait(timeout=60)
            assert code == 0, f"{self.name} ended with {code}:\n{self.log()[-6000:]}"
        assert "runtime error" not in self.log() and "ERROR: AddressSanitizer" not in self.log()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def memory_mib(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def __enter__(self):
        self.log_file.unlink(missing_ok=True)
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        else:
            self.stop()


# --- what was written ------------------------------------------------------------------------------------
class Audit:
    """The writes of the controller's account since this object was made, as the API server saw them."""

    def __init__(self, account=SERVICE_ACCOUNT):
        self.account = account
        self.path = RUN / "logs" / "audit.log"
        self.file = open(self.path)
        self.start = self.file.seek(0, os.SEEK_END)

    def lines(self):
        self.file.seek(self.start)
        yield from self.file
        if os.fstat(self.file.fileno()).st_ino != self.path.stat().st_ino:  # it grew too large: a new one
            with open(self.path) as log:
                yield from log

    def entries(self, namespace=None):
        """The audit log's own records, without those of the lease."""
        found = []
        for line in self.lines():
            if not line.endswith("\n"):
                break  # it is just being written
            entry = json.loads(line)
            where = entry.get("objectRef", {})
            if entry["user"].get("username") != self.account or where.get("resource") == "leases":
                continue
            if namespace in (None, where.get("namespace")):
                found.append(entry)
        return found

    def writes(self, namespace=None):
        return [(e["verb"], "/".join(filter(None, (e["objectRef"].get("resource"),
                                                   e["objectRef"].get("subresource")))))
                for e in self.entries(namespace)]
