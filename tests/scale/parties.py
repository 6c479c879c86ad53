"""Those that are measured: our controller, the HPA controller and the VPA recommender; and what feeds them."""
import contextlib
import json
import os
import re
import ssl
import time
import urllib.request

from judge import SCRAPE_S
from place import API, NAME, OUT, PKI, PORTS, ROOT, background, built, harness

PAGE = 1 / os.sysconf("SC_CLK_TCK")
UNVERIFIED = ssl._create_unverified_context()  # of the peers' own certificates, on this machine


def read(url):
    with urllib.request.urlopen(url, timeout=60, context=UNVERIFIED if url.startswith("https") else None) as answer:
        return answer.read().decode()


def series(text):
    """Name, labels as they are written, and value."""
    for line in text.splitlines():
        match = re.match(r"(\w+)(\{.*\})? (\S+)", line)
        if match:
            yield match[1], match[2] or "", float(match[3])


class Exposed(dict):
    """What a program tells at /metrics, summed by name."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        for name, _, value in series(text):
            self[name] = self.get(name, 0) + value

    def where(self, name, *labels):
        """The sum of those alone that have all of these labels, written as in 'result="failed"'."""
        if not labels:
            return self.get(name, 0)
        own = "\n".join(line for line in self.text.splitlines() if line.startswith(name))
        return sum(value for n, has, value in series(own)
                   if n == name and all(re.search(rf"[{{,]{re.escape(label)}[,}}]", has) for label in labels))


class Process:
    """CPU and memory of a process, and what it tells at an address."""

    def __init__(self, process, metrics):
        self.process, self.metrics, self.began = process, metrics, time.time()

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * PAGE

    def memory_mib(self):
        """Now, and the most that it ever was."""
        with open(f"/proc/{self.process.pid}/status") as file:
            text = file.read()
        return tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def exposed(self):
        return Exposed(read(self.metrics))

    def alive(self):
        assert self.process.poll() is None, f"it ended by itself with {self.process.returncode}"
        return True


@contextlib.contextmanager
def running(process, metrics):
    party = Process(process, metrics)
    try:
        harness.wait("it answers", lambda: party.alive() and answers(metrics), 120)
        yield party
    finally:
        process.terminate()
        process.wait()


def answers(url):
    with contextlib.suppress(OSError):
        return read(url)
    return None


# --- what is measured ------------------------------------------------------------------------------
def ours(*flags):
    """Like a user's, all options at their defaults; but no other can take over, as on a machine that is busy with the
    measurement itself the lease would be lost now and then."""
    controller = harness.Controller(NAME, f"--listen=127.0.0.1:{PORTS['CONTROLLER']}", "--policy=off", "--leader-elect=false",
                                    "--log-level=info", *flags, binary=ROOT / "build/faasrl-mpa", fast=False)
    controller.log_file.unlink(missing_ok=True)
    return running(controller.launch().process, f"http://127.0.0.1:{PORTS['CONTROLLER']}/metrics")


def hpa_controller():
    """Alone, and without the limit on its requests that makes a pass over 1,000 take 50 s."""
    config = harness.KUBECONFIG
    return running(background(
        "hpa", harness.RUN / "bin/kube-controller-manager", "--controllers=horizontal-pod-autoscaler-controller",
        f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1", f"--secure-port={PORTS['HPA']}", "--leader-elect=false", "--kube-api-qps=1000",
        "--kube-api-burst=2000", "--authorization-always-allow-paths=/metrics"),
        f"https://127.0.0.1:{PORTS['HPA']}/metrics")


def vpa_recommender():
    program = built("vpa")
    return running(background(
        "vpa", program, f"--kubeconfig={harness.KUBECONFIG}", f"--address=127.0.0.1:{PORTS['VPA']}",
        "--kube-api-qps=1000", "--kube-api-burst=2000"), f"http://127.0.0.1:{PORTS['VPA']}/metrics")


def install_vpa():
    harness.kubectl("apply", "--server-side", "-f", built("vpa").parent / "crd.yaml")
    harness.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/verticalpodautoscalers.autoscaling.k8s.io")


# --- what feeds them ---------------------------------------------------------------------------------
FEED = f"http://127.0.0.1:{PORTS['FEED']}"


def feed():
    return running(background(
        "feed", ROOT / "build/scale/feed", f"--api={API}", f"--ca={PKI}/ca.crt", f"--cert={PKI}/admin.crt",
        f"--key={PKI}/admin.key", f"--listen=127.0.0.1:{PORTS['FEED']}",
        f"--metrics-api=127.0.0.1:{PORTS['METRICS_API']}"), f"{FEED}/pods")


def step(apps, factor):
    """Multiplies the load of some functions; the moment when."""
    body = "&".join([f"factor={factor}", *(f"app={app}" for app in apps)]).encode()
    with urllib.request.urlopen(f"{FEED}/step", body, timeout=60) as answer:
        return float(answer.read())


def prometheus(*flags):
    config = OUT / "prometheus.yaml"
    config.write_text(f"""global: {{scrape_interval: {SCRAPE_S}s, scrape_timeout: 14s}}
scrape_configs:
- job_name: feed
  honor_labels: true
  static_configs: [{{targets: ["127.0.0.1:{PORTS['FEED']}"]}}]
""")
    harness.run("rm", "-rf", OUT / "prometheus")
    return running(background(
        "prometheus", "prometheus", f"--config.file={config}", f"--storage.tsdb.path={OUT}/prometheus",
        f"--web.listen-address=127.0.0.1:{PORTS['PORT_PROMETHEUS']}", *flags), f"{harness.PROMETHEUS}/-/ready")


@contextlib.contextmanager
def metrics_api():
    """metrics.k8s.io, known to the API server by its address."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "namespace": "kube-system"},
               "spec": {"type": "ExternalName", "externalName": "localhost"}}
    known = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
             "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": True,
                      "groupPriorityMinimum": 100, "versionPriority": 100, "service": {
                          "name": "metrics", "namespace": "kube-system", "port": PORTS["METRICS_API"]}}}
    for thing in (service, known):
        harness.kubectl("apply", "-f", "-", stdin=json.dumps(thing))
    harness.kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1beta1.metrics.k8s.io")
    yield
