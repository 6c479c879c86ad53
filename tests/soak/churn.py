"""What is deleted, made and set back in which second: all of it follows from the seed."""
import contextlib
import random
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import objects
import parties

ROUND_S = 30  # in which each pod that is there at its beginning is deleted; its ReplicaSet makes another
MPA_LIFE_S = 60
MPA_GAP_S = 5  # for so long a function has no MPA
BUSY_PART, BUSY_FACTOR = 20, 1.8  # one function in so many has so much more load for a round: its replicas change


class Mpas:
    """One MPA for each function, of which some end each second. Half of those that follow have a name that was never
    there before, as what is kept by name could be kept for good."""

    def __init__(self, seed, size):
        self.random, self.size, self.second = random.Random(f"mpas {seed}"), size, 0
        self.names = {i: objects.name_of(i) for i in range(size)}
        self.due = {}  # second to the functions that get one
        self.made = 0

    def step(self):
        """Names to delete, and (name, function) to make."""
        ending = self.random.sample(sorted(self.names), min(len(self.names), self.ends()))
        gone = [self.names.pop(i) for i in ending]
        made = [(self.named(i), objects.name_of(i)) for i in self.due.pop(self.second, [])]
        self.due[self.second + MPA_GAP_S] = ending
        self.second += 1
        return gone, made

    def ends(self):
        return (self.second + 1) * self.size // MPA_LIFE_S - self.second * self.size // MPA_LIFE_S

    def named(self, i):
        self.made += 1
        name = objects.name_of(i)
        self.names[i] = name if self.random.random() < 0.5 else f"{name}-{self.made}"
        return self.names[i]


def order(seed, number, pods):
    """Of the pods of a round, each second's."""
    shuffled = sorted(pods, key=lambda p: (p["metadata"]["labels"]["app"], p["metadata"]["creationTimestamp"]))
    random.Random(f"pods {seed} {number}").shuffle(shuffled)
    names = [p["metadata"]["name"] for p in shuffled]
    return [names[len(names) * s // ROUND_S:len(names) * (s + 1) // ROUND_S] for s in range(ROUND_S)]


def busy(seed, number, size):
    """The functions that have more load in a round."""
    return {objects.name_of(i) for i in random.Random(f"load {seed} {number}").sample(range(size), max(1, size // BUSY_PART))}


class Churn:
    """Carries it out, a second's work at a time."""

    def __init__(self, seed, size, set_back=False):
        self.seed, self.size, self.second, self.mpas, self.set_back = seed, size, 0, Mpas(seed, size), set_back
        self.pool = ThreadPoolExecutor(objects.THREADS)
        self.done = {"pods deleted": 0, "MPAs deleted": 0, "replicas set back": 0, "MPAs made": 0}
        self.round, self.busy = [], set()

    def begin_round(self, number):
        self.round = order(self.seed, number, [p for page in objects.pages("pods") for p in page])
        before, self.busy = self.busy, busy(self.seed, number, self.size)
        for factor, apps in ((1, before - self.busy), (BUSY_FACTOR, self.busy - before)):
            for app in sorted(apps):
                with contextlib.suppress(urllib.error.HTTPError):  # just now no pod of it runs
                    parties.step([app], factor)

    def step(self):
        number, within = divmod(self.second, ROUND_S)
        if within == 0:
            self.begin_round(number)
        gone, made = self.mpas.step()
        work = [("pods deleted", "DELETE", f"{objects.KINDS['pods']}/{name}", None) for name in self.round[within]]
        work += [("MPAs deleted", "DELETE", f"{objects.KINDS['mpas']}/{name}", None) for name in gone]
        two = {"spec": {"replicas": objects.PODS}}
        back = [name for _, name in made if self.set_back]
        work += [("replicas set back", "PATCH", f"{objects.KINDS['deployments']}/{name}", two) for name in back]
        work += [("MPAs made", "POST", objects.KINDS["mpas"], objects.mpa(*one)) for one in made]
        for what, status in self.pool.map(self.ask, work):
            self.done[what] += status in (200, 201, 202)
        self.second += 1

    @staticmethod
    def ask(work):
        what, method, path, body = work
        status, answer = objects.ask(method, path, body, patch=method == "PATCH")
        # A pod may be gone by itself: its function got fewer.
        assert status in (200, 201, 202) or (what == "pods deleted" and status in (404, 409)), (method, path, answer)
        return what, status

    def close(self):
        self.pool.shutdown(cancel_futures=True)
