"""Three replicas share eight shards while they are killed, stopped, cut off, ended and started. Every write of
theirs is held against the leases, by what the API server itself has written down of both. Works with fake nodes."""
import collections
import contextlib
import datetime
import itertools
import json
import signal
import threading
import time
import urllib.request

import yaml

from harness import Audit, Controller, api_proxy, kubectl, wait
from test_chart import of_kind, render
from test_trouble import Proxy

SYSTEM, LEASE, SHARDS, LIVES, EACH = "shards-system", "shards", 8, 20, 4
LEASE_S = 15
LOGGED_S = 0.3  # the log's end of a write is that of its handler, when the writer may have had the answer for a while
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shards-system/leases"
MPAS = "/apis/autoscaling.faasrl.io/v1alpha1/namespaces/{}/multidimpodautoscalers/{}"
FLAGS = [f"--lease-name={LEASE}", f"--shards={SHARDS}", "--interval=1s", "--status-interval=1s",
         "--prometheus-timeout=1s"]


def shard_of(namespace, count):
    """FNV-1a, the finalizer of splitmix64 and jump consistent hash, as published."""
    word, key = (1 << 64) - 1, 14695981039346656037
    for byte in namespace.encode():
        key = (key ^ byte) * 1099511628211 & word
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        key = (key ^ key >> shift) * factor & word
    key ^= key >> 31
    at, following = -1, 0
    while following < count:
        at, key = following, (key * 2862933555777941757 + 1) & word
        following = int((at + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return at


def one_of_each_shard():
    names = (f"shards-{i}" for i in itertools.count())
    found = {}
    while len(found) < SHARDS:
        name = next(names)
        found.setdefault(shard_of(name, SHARDS), name)
    return found


def function(name):
    """Its pods never run: there is no such node."""
    labels = {"app": name}
    pod = {"nodeSelector": {"no-such": "node"}, "containers": [
        {"name": "function", "image": "none:1", "resources": {"requests": {"cpu": "100m"}}}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}}}


def mpa(name):
    at_will = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 9, "periodSeconds": 1}]}
    return {"apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler", "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                     "goals": {"latency": {"target": "250ms"}},
                     "constraints": {"global": {"minReplicas": 1, "maxReplicas": 9,
                                                "behavior": {"scaleUp": at_will, "scaleDown": at_will}}},
                     "recommenders": [{"name": "the-test"}]}}


@contextlib.contextmanager
def accounts():
    """One for each life of a replica, so that the audit log tells them apart; with the rights of the chart."""
    rendered = render("--set", f"shards={SHARDS},fullnameOverride={LEASE}", namespace=SYSTEM, release=LEASE)
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}]
    objects += [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"life-{i}", "namespace": SYSTEM}}
                for i in range(LIVES)]
    everyone = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"system:serviceaccounts:{SYSTEM}"}]
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        found = of_kind(rendered, kind)
        objects += [{**o, "subjects": everyone} if "subjects" in o else o for o in found]
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    try:
        yield
    finally:
        kubectl("delete", "namespace", SYSTEM, "--wait=false")
        kubectl("delete", "clusterrole,clusterrolebinding", LEASE)


@contextlib.contextmanager
def functions(namespaces):
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n, "labels": {"faasrl-e2e": "true"}}}
               for n in namespaces]
    for namespace in namespaces:
        for i in range(EACH):
            for made in (function(f"f-{i}"), mpa(f"f-{i}")):
                made["metadata"]["namespace"] = namespace
                objects.append(made)
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    try:
        yield
    finally:
        for namespace in namespaces:
            kubectl("delete", "mpa", "--all", "-n", namespace, "--wait=false")
        kubectl("delete", "namespace", *namespaces, "--wait=false")


class Wishes(threading.Thread):
    """Somebody else's recommender, which asks for other replicas all the time."""

    def __init__(self, api, namespaces):
        super().__init__(daemon=True)
        self.api, self.namespaces, self.over = api, namespaces, threading.Event()

    def run(self):
        for turn in itertools.count():
            for namespace, i in itertools.product(self.namespaces, range(EACH)):
                body = json.dumps({"status": {"desiredReplicas": 1 + (turn + i) % 3}}).encode()
                request = urllib.request.Request(self.api + MPAS.format(namespace, f"f-{i}") + "/status", body,
                                                 {"Content-Type": "application/merge-patch+json"}, method="PATCH")
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(request, timeout=30).close()
                if self.over.wait(0.06):
                    return


class Leases(threading.Thread):
    """Every version of every lease, in order: name to holders."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api, self.holders = api, collections.defaultdict(list)
        with urllib.request.urlopen(api + LEASES, timeout=30) as answer:
            listed = json.load(answer)
        assert not listed["items"]
        self.stream = urllib.request.urlopen(
            f"{api}{LEASES}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}", timeout=300)

    def run(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            for line in self.stream:
                event = json.loads(line)
                assert event["type"] in ("ADDED", "MODIFIED"), line
                lease = event["object"]
                self.holders[lease["metadata"]["name"]].append(lease["spec"].get("holderIdentity", ""))

    def shares(self):
        now = [self.holders[f"{LEASE}-shard-{i}"] for i in range(SHARDS)]
        return collections.Counter(h[-1] for h in now if h)

    def shared_by(self, *replicas):
        """All shards are theirs, as evenly as can be."""
        shares = self.shares()
        even = {SHARDS // len(replicas), -(-SHARDS // len(replicas))}
        return set(shares) == {r.name for r in replicas} and set(shares.values()) <= even


Write = collections.namedtuple("Write", "began ended writer what namespace name code")


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Judge:
    """What the API server has written down: when each write came and when it was answered, and by whom."""

    def __init__(self):
        self.audit = Audit()
        self.prefix = f"system:serviceaccount:{SYSTEM}:"

    def writes(self):
        for line in self.audit.lines():
            entry = json.loads(line)
            user, where = entry["user"].get("username", ""), entry.get("objectRef", {})
            if user.startswith(self.prefix) and where.get("apiGroup") not in (
                    "authentication.k8s.io", "authorization.k8s.io"):
                yield Write(moment(entry["requestReceivedTimestamp"]), moment(entry["stageTimestamp"]),
                            user.removeprefix(self.prefix), where.get("resource"), where.get("namespace"),
                            where.get("name"), entry.get("responseStatus", {}).get("code", 0))

    def read(self, leases):
        """Sets the writes for MPAs, and (write, holder) of each version of each lease."""
        every = sorted(self.writes())
        self.of_mpas = [w for w in every if w.what != "leases"]
        self.versions = {}
        for name, holders in leases.holders.items():
            written = [w for w in every if w.what == "leases" and w.code in (200, 201) and name == w.name]
            # A lease that is made has no name in the path.
            made = [w for w in every if w.what == "leases" and w.code == 201 and not w.name]
            if len(written) == len(holders) - 1:
                written = [min(made, key=lambda w: abs(w.ended - written[0].began))] + written if written else made[:1]
            assert len(written) == len(holders), f"{name}: {len(written)} writes, {len(holders)} versions"
            self.versions[name] = list(zip(written, holders))

    def reign(self, write, name):
        """(When the claim was answered, the last renewal before the write, when the next holder's claim or the
        return of the lease came) of the writer's hold on the lease at the time of the write."""
        versions = self.versions[name]
        before = [k for k, (v, _) in enumerate(versions) if v.began <= write.began]
        assert before and versions[before[-1]][1] == write.writer, \
            f"{write} while {name} was of {versions[before[-1]] if before else 'nobody'}"
        first = last = before[-1]
        while first > 0 and versions[first - 1][1] == write.writer:
            first -= 1
        after = [v.began for v, holder in versions[last:] if holder != write.writer]
        return versions[first][0].ended, versions[last][0].began, min(after, default=float("inf"))

    def check(self):
        last = {}
        for write in self.of_mpas:
            shard = f"{LEASE}-shard-{shard_of(write.namespace, SHARDS)}"
            claimed, renewed, taken = self.reign(write, shard)
            assert claimed <= write.began, f"{write}: {shard} was not yet its own"
            assert write.ended <= taken + LOGGED_S, f"{write}: {shard} was given away before it had ended"
            assert write.ended <= renewed + LEASE_S, f"{write}: {shard} had run out"
            previous = last.get(write.namespace)
            if previous and previous.writer != write.writer:
                assert previous.ended <= write.began + LOGGED_S, f"{previous} and {write} are at one time"
            if not previous or write.ended > previous.ended:
                last[write.namespace] = write

    def handovers(self):
        by_namespace = collections.defaultdict(list)
        for write in self.of_mpas:
            by_namespace[write.namespace].append(write.writer)
        return sum(len(list(itertools.groupby(writers))) - 1 for writers in by_namespace.values())


class Replicas:
    """One account for each life."""

    def __init__(self, stack, leases):
        self.stack, self.leases, self.lives = stack, leases, itertools.count()
        self.running = []

    def start(self, link=None):
        name = f"life-{next(self.lives)}"
        made = Controller(name, f"--identity={name}", *FLAGS, account=(name, SYSTEM), server=link and link.url)
        made.log_file.unlink(missing_ok=True)
        made.link = link
        self.stack.callback(self.end, made)
        self.running.append(made.launch())
        return made

    @staticmethod
    def end(replica):
        if replica.process.poll() is None:
            replica.kill()

    def restart_lost(self):
        """On a machine that is busy an API server may not answer for so long that leases run out. Kubernetes would
        start the replica anew."""
        for replica in list(self.running):
            if replica.process.poll() is not None:
                assert "a lease was lost" in replica.log(), replica.log()[-2000:]
                self.running.remove(replica)
                self.start(replica.link)

    def share(self, count):
        def shared():
            self.restart_lost()
            assert len(self.running) == count
            return self.leases.shared_by(*self.running)
        wait(f"{count} share them", shared, 90, 0.1)

    def take(self, index):
        return self.running.pop(index)


def ended_by_itself(replica):
    return replica.process.wait(timeout=30) == 1 and "a lease was lost" in replica.log()


def test_each_write_is_by_the_holder_of_the_shard():
    namespaces = one_of_each_shard()
    server = json.loads(kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(accounts())
        stack.enter_context(functions(list(namespaces.values())))
        api = stack.enter_context(api_proxy())
        link = stack.enter_context(Proxy(int(server.rsplit(":", 1)[1])))
        leases, judge, wishes = Leases(api), Judge(), Wishes(api, list(namespaces.values()))
        leases.start()
        wishes.start()
        replicas = Replicas(stack, leases)

        # They come.
        replicas.start(link)
        replicas.share(1)
        replicas.start()
        replicas.start()
        replicas.share(3)
        time.sleep(2)

        # One is killed, one is stopped, and one comes, all at once.
        replicas.take(2).kill()
        stopped = replicas.take(1)
        stopped.process.send_signal(signal.SIGSTOP)
        replicas.start()
        replicas.share(2)
        stopped.process.send_signal(signal.SIGCONT)
        assert ended_by_itself(stopped)
        replicas.start()
        replicas.share(3)

        # One is cut off: what it sends is lost.
        link.stall()
        cut = replicas.take(next(i for i, r in enumerate(replicas.running) if r.link))
        replicas.share(2)
        assert ended_by_itself(cut)
        link.cut()
        link.let_through()

        # One ends as it should: nobody waits until its leases run out.
        began = time.monotonic()
        replicas.take(0).stop()
        replicas.share(1)
        took = time.monotonic() - began
        time.sleep(2)
        wishes.over.set()
        wishes.join()
        replicas.take(0).stop()
        time.sleep(1)
        judge.read(leases)
        judge.check()

    writers = collections.Counter(w.writer for w in judge.of_mpas)
    kinds = collections.Counter(w.what for w in judge.of_mpas)
    said = (f"{len(judge.of_mpas)} writes ({dict(kinds)}) by {dict(writers)}, {judge.handovers()} handovers; "
            f"the shards of one that ended were taken within {took:.1f} s")
    print(said)
    # Other tests' MPAs may still be there.
    assert len(writers) >= 5 and {w.namespace for w in judge.of_mpas} >= set(namespaces.values()), said
    assert kinds["deployments"] >= 60 and len(judge.of_mpas) >= 500 and judge.handovers() >= 12, said
