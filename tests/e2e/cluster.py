"""The cluster that the tests run against: kubectl, namespaces, and the API by itself."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import subprocess
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Kubectl:
    """Runs kubectl ($KUBECTL) with the cluster's kubeconfig ($KUBECONFIG)."""

    def __init__(self, namespace=None):
        self.program = os.environ.get("KUBECTL", "kubectl")
        default = ROOT / "build" / "cluster" / "kubeconfig"
        self.kubeconfig = os.environ.get("KUBECONFIG", str(default))
        self.namespace = namespace

    def command(self, *args):
        namespace = ["--namespace", self.namespace] if self.namespace else []
        return [self.program, "--kubeconfig", self.kubeconfig, *namespace, *args]

    def try_run(self, *args, stdin=None):
        """The finished process, whatever came of it."""
        return subprocess.run(self.command(*args), input=stdin, capture_output=True, text=True,
                              timeout=60)

    def run(self, *args, stdin=None):
        """Standard output; fails the test when kubectl fails."""
        done = self.try_run(*args, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def get(self, *args):
        return json.loads(self.run("get", *args, "-o", "json"))

    @contextlib.contextmanager
    def proxy(self):
        """The API at a local address, for many requests in a short time."""
        process = subprocess.Popen(self.command("proxy", "--port=0"), stdout=subprocess.PIPE,
                                   text=True)
        try:
            line = process.stdout.readline()
            address = re.search(r"127\.0\.0\.1:\d+", line)
            assert address, f"kubectl proxy said: {line!r}"
            yield Api(f"http://{address.group()}")
        finally:
            process.terminate()
            process.wait()


class Api:
    def __init__(self, url):
        self.url = url

    def post(self, path, body):
        """The HTTP status and the answer."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture(scope="session")
def kubectl():
    """kubectl on a cluster that answers; without one the tests fail."""
    found = Kubectl()
    assert pathlib.Path(found.kubeconfig).is_file(), (
        f"there is no cluster: {found.kubeconfig} is missing; start one with make cluster-up")
    found.run("get", "--raw", "/readyz")
    return found


@contextlib.contextmanager
def new_namespace(kubectl, prefix):
    """kubectl in a namespace of its own, which goes with everything in it."""
    name = f"{prefix}-{secrets.token_hex(3)}"
    kubectl.run("create", "namespace", name)
    try:
        yield Kubectl(name)
    finally:
        kubectl.run("delete", "namespace", name, "--wait=false")
