"""A policy of its own on the real cluster: found by the function's past in Prometheus while thresholds decide, kept in
a ConfigMap, back after a restart, found anew when what is kept cannot be read, gone with the MPA."""
import base64
import hashlib
import json
import re
import struct
import time

import pytest
import yaml

from harness import (EXAMPLE, OUT, ROOT, Controller, Load, apply, condition, condition_is, deploy_function, events,
                     function_url, get, kubectl, listing, mpa, run, wait)

pytestmark = pytest.mark.usefixtures("real_pods")
SYSTEM = "faasrl-mpa"
# With room above what is needed, so that there is something to save even where a busy machine makes requests look as if
# some cost many times the mean.
MPA = EXAMPLE.replace("name: threshold", "name: ppo").replace("cpu: 400m", "cpu: 1000m")
BAD = OUT / "bad.policy"
LEARN = ["--learn-history=30m", "--learn-after=1m", "--learn-effort=2", f"--policy={BAD}"]
PROMETHEUS_S = 100  # of load that Prometheus must have seen


class Reader:
    """A checkpoint, part after part, as docs/learning.md describes it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def skip_text(self):
        length = self.number()
        self.at += length

    def skip_texts(self, each=1):
        count = self.number()
        for _ in range(count * each):
            self.skip_text()
        return count


def spoiled(data):
    """A policy that wants far more CPU than it needs, so that there is something to find: the last options of margin and
    cpu, and the first of late and risk, are what it likes; less than a search can make it like others."""
    content = bytearray(data[52:])
    read = Reader(content)
    read.skip_text()  # algorithm
    read.at += 3 * 8  # steps, episodes, updates
    read.skip_texts()
    read.skip_texts()
    heads = [read.number() for _ in range(read.skip_texts())]
    read.skip_texts(2)
    assert read.number() >= 1
    read.skip_text()  # the first network's name
    _, inputs, outputs, hidden = (read.number() for _ in range(4))
    widths = [inputs, *(read.number() for _ in range(hidden)), outputs]
    read.at += 4 * (sum(a * b + b for a, b in zip(widths, widths[1:])) - outputs)
    assert outputs == sum(heads)
    for option in (0, heads[0], sum(heads[:3]) - 1, sum(heads[:4]) - 1):
        place = read.at + 4 * option
        struct.pack_into("<f", content, place, struct.unpack_from("<f", content, place)[0] + 6)
    return data[:20] + hashlib.sha256(content).digest() + content


@pytest.fixture(scope="module")
def watched(request):
    """A function under load that Prometheus has known for a while, whose only trouble is that it waits for an MPA."""
    namespace = "learning"
    BAD.write_bytes(spoiled((ROOT / "build/policy").read_bytes()))
    kubectl("create", "namespace", namespace, check=False)
    deploy_function(namespace)
    with Load(function_url(namespace), "8@1800s"):
        time.sleep(PROMETHEUS_S)
        yield namespace
    kubectl("delete", "namespace", namespace, "--wait=false")


def kept(namespace):
    """The ConfigMap with the policy of the MPA, if there is one."""
    for found in listing("configmaps", SYSTEM, "-l", "app.kubernetes.io/component=policy"):
        if found["metadata"]["annotations"]["autoscaling.faasrl.io/mpa"] == f"{namespace}/primes":
            return found
    return None


def is_learned(namespace):
    """The end of a search is said in an event, with what it found."""
    return [message for reason, message in events(namespace) if reason in ("PolicyFound", "PolicyKept")]


def find(namespace):
    """The MPA is applied, and a policy of its own is found. A search need not find a better one; then it is done again,
    with what was measured since."""
    for _ in range(3):
        apply(MPA, namespace)
        wait("it has learned", lambda: is_learned(namespace), 240)
        if "PolicyFound" in dict(events(namespace)):
            return
        forget(namespace)
    pytest.fail("three searches found nothing better than a policy that wants far too much CPU")


def serves(namespace, which):
    now = condition_is(namespace, "FallbackActive", "False")
    return now and now["message"] == f"ppo decides by {which}"


def forget(namespace):
    kubectl("delete", "mpa", "primes", "-n", namespace, "--ignore-not-found")
    kubectl("delete", "events", "--all", "-n", namespace)
    kubectl("delete", "configmaps", "-n", SYSTEM, "-l", "app.kubernetes.io/component=policy")


def test_it_learns_by_its_past_and_keeps_it(watched):
    forget(watched)
    journal = OUT / "learning.journal"
    journal.unlink(missing_ok=True)
    with Controller("learning", *LEARN, f"--journal={journal}") as controller:
        apply(MPA, watched)
        first = wait("thresholds decide meanwhile",
                     lambda: condition_is(watched, "FallbackActive", "True", "Bootstrapping"), 30)
        assert re.search(r"threshold decides in place of ppo: bootstrapping \d+ %", first["message"])
        find(watched)
        wait("a policy of its own decides", lambda: serves(watched, "a policy of its own"), 20)
        assert mpa(watched)["status"]["lastDecision"]["recommender"] == "ppo"
        found = wait("it is kept", lambda: kept(watched), 20)
        data = base64.b64decode(found["binaryData"]["policy"])
        assert 1000 < len(data) < 100_000
        file = ROOT / "build/e2e/kept.policy"
        file.write_bytes(data)
        shown = run(ROOT / "build/mpactl", "checkpoint", "show", file).stdout
        assert found["metadata"]["annotations"]["autoscaling.faasrl.io/sha256"] in shown
        story = kubectl("mpa", "explain", "primes", "-n", watched).stdout
        assert f"{watched}/primes: Deployment primes, p99 below 250ms, 1 to 4 replicas" in story.splitlines()[0]
        assert "last decision: " in story and re.search(r"Z  PolicyFound +a policy of its own decides", story)
        controller.kill()  # nothing is lost by it
    replayed = run(ROOT / "build/mpactl", "replay", journal, "--policy", BAD).stdout
    assert re.search(r"repeated with the same result, 0 with another", replayed), replayed

    with Controller("learning-again", *LEARN) as controller:
        wait("what is kept decides at once", lambda: serves(watched, "a policy of its own"), 30)
        assert "a policy is back" in controller.log()
        assert not condition_is(watched, "FallbackActive", "True", "Bootstrapping")

    spoil = {"binaryData": {"policy": base64.b64encode(data[:-9] + b"corrupted").decode()}}
    kubectl("patch", "configmap", found["metadata"]["name"], "-n", SYSTEM, "--type=merge", "-p", json.dumps(spoil))
    kubectl("delete", "events", "--all", "-n", watched)
    with Controller("learning-anew", *LEARN):
        wait("it is said that it cannot be read", lambda: "PolicyUnreadable" in dict(events(watched)), 30)
        wait("it has learned again", lambda: is_learned(watched), 240)
        wait("what cannot be read is gone",
             lambda: (kept(watched) or {}).get("binaryData") != spoil["binaryData"], 20)
        wait("ppo decides", lambda: condition_is(watched, "FallbackActive", "False"), 20)
        kubectl("delete", "mpa", "primes", "-n", watched)
        wait("what is kept goes with it", lambda: not kept(watched), 20)


def test_killed_while_it_learns(watched):
    """It begins anew; until then thresholds decide, and nothing half done is kept."""
    forget(watched)
    flags = [*LEARN, "--learn-effort=32"]
    controller = Controller("learning-killed", *flags)
    controller.log_file.unlink(missing_ok=True)
    controller.start()
    apply(MPA, watched)

    def in_the_middle():
        found = re.search(r"bootstrapping (\d+) %", condition(watched, "FallbackActive").get("message", ""))
        return found and 0 < int(found[1]) < 90
    wait("it is in the middle of it", in_the_middle, 120)
    controller.kill()
    assert not kept(watched)
    with Controller("learning-after", *LEARN):
        wait("it has learned", lambda: is_learned(watched), 240)
        wait("ppo decides", lambda: condition_is(watched, "FallbackActive", "False"), 20)


def test_without_a_past_the_general_policy_decides(watched):
    forget(watched)
    with Controller("learning-nothing", "--learn-after=12h"):
        apply(MPA, watched)
        wait("the general policy decides", lambda: serves(watched, "the general policy"), 30)


@pytest.fixture
def role():
    """That of deploy/rbac.yaml, to take something from; it is put back."""
    name = "faasrl-mpa"
    yield get("role", name, SYSTEM)
    plain = [o for o in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()) if o["kind"] == "Role"]
    kubectl("replace", "-f", "-", stdin=yaml.safe_dump_all(plain))


@pytest.mark.parametrize("verb", ["get", "create", "patch", "delete"])
def test_no_right_to_policies_is_spare(watched, role, verb):
    forget(watched)
    for rule in role["rules"]:
        if rule["resources"] == ["configmaps"]:
            rule["verbs"].remove(verb)
    kubectl("replace", "-f", "-", stdin=yaml.safe_dump(role))
    refusal = re.compile(rf'cannot {verb} resource \\?"configmaps\\?"')
    with Controller("learning-rights", *LEARN) as controller:
        if verb == "get":
            apply(MPA, watched)
        else:
            find(watched)
        if verb == "delete":
            wait("it is kept", lambda: kept(watched), 20)
            kubectl("delete", "mpa", "primes", "-n", watched)
        wait(f"the API server refuses to {verb} it", lambda: refusal.search(controller.log()), 30)
