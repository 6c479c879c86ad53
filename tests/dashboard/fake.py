#!/usr/bin/python3
"""The controller's side of the dashboard, with made-up MPAs, which can be made to change and to fail.
By hand: tests/dashboard/fake.py [--mpas N] [--port PORT] [--token TOKEN]"""
import argparse
import base64
import copy
import hashlib
import http.server
import json
import math
import queue
import random
import re
import threading
import time
import urllib.parse
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "build/page/index.html"
NOW = 1_750_000_000_000  # of the made-up cluster, when it begins
INTERVAL = 15_000
NAMES = ["cart", "checkout", "thumbnail", "search", "mail", "invoice", "login", "report", "resize", "translate", "video", "feed"]
SPACES = ["shop", "media", "billing", "platform"]
MESSAGES = {"ok": "", "late": "p99 {latency:.0f}ms over goal {goal}ms", "unknown": "no CPU usage of the 2 pod(s) of Deployment/{name}: nothing is changed",
            "fallback": "threshold decides in place of ppo: bootstrapping 40 %",
            "trouble": "Deployment {namespace}/{name} does not exist"}


def policy_of(html):
    """What the controller sends with the page: only this very script and style."""
    def digest(tag):
        body = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert len(body) == 1, f"one <{tag}>"
        return base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
    return (f"default-src 'none'; script-src 'sha256-{digest('script')}'; style-src 'sha256-{digest('style')}'; connect-src 'self'; "
            "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def make_row(i, count):
    chance = random.Random(i)
    name = NAMES[i % len(NAMES)] + (f"-{i // len(NAMES)}" if count > len(NAMES) else "")
    health = chance.choices(["ok", "late", "fallback", "trouble", "unknown"], [80, 8, 6, 3, 3])[0] if count > 20 else \
        ["ok", "late", "ok", "fallback", "ok", "ok", "trouble", "ok", "unknown", "ok", "ok", "ok"][i % 12]
    goal = chance.choice([100, 150, 250, 500, 1000])
    latency = goal * (chance.uniform(1.1, 2) if health == "late" else chance.uniform(0.3, 0.95))
    replicas, cpu = chance.randint(1, 9), chance.choice([100, 150, 200, 250, 400, 800, 1200])
    asks = chance.choice(["ppo", "ppo", "threshold", "hpa"]) if health != "fallback" else "ppo"
    held_back = health == "fallback" or (health == "late" and asks == "ppo")
    unknown = health in ("unknown", "trouble")
    namespace = SPACES[i % len(SPACES)] if count <= 20 else f"team-{i % 37}"
    return {"namespace": namespace, "name": name, "target": f"Deployment/{name}",
            "mode": "Off" if i % 5 == 4 else "Initial" if i % 11 == 10 else "Auto", "paused": i % 12 == 7, "recommender": asks,
            "decidedBy": "threshold" if held_back else asks, "goalMs": goal, "percentile": 99,
            "latencyMs": None if unknown else round(latency, 1), "requestsPerSecond": None if unknown else round(chance.uniform(0.2, 300), 1),
            "utilization": None if unknown else round(chance.uniform(0.2, 0.9), 3), "replicas": replicas,
            "wantedReplicas": replicas + (i % 3 == 1), "cpuMilli": cpu, "wantedCpuMilli": cpu + 50 * (i % 4 == 2), "health": health,
            "message": MESSAGES[health].format(latency=latency, goal=goal, name=name, namespace=namespace)}


def decide(used, replicas, cpu, i, latency, goal):
    """What a simple recommender would have: replicas, CPU and why."""
    if used > 0.78 and i % 4 == 0 and replicas < 9:
        return replicas + 1, cpu, f"p99 {latency:.0f}ms near goal {goal}ms at {100 * used:.0f}% CPU: replicas {replicas} → {replicas + 1}"
    if used > 0.66 and i % 8 == 0 and cpu < 800:
        return replicas, cpu + 50, f"{100 * used:.0f}% CPU over 66%: cpu {cpu}m → {cpu + 50}m"
    if used < 0.3 and i % 12 == 0 and replicas > 1:
        return replicas - 1, cpu, f"{100 * used:.0f}% CPU for 3m: replicas {replicas} → {replicas - 1}"
    return replicas, cpu, None


def timeline_of(row, now, hours=3):
    """A load that rises and falls, what it made of latency, and the decisions that followed. In mode Off the target stays
    as it is, and what is wanted follows the load."""
    chance = random.Random(row["name"])
    count, goal, top, off = int(hours * 3600 * 1000 / INTERVAL), row["goalMs"], row["requestsPerSecond"] or 20, row["mode"] == "Off"
    points = {k: [] for k in ("time", "requestsPerSecond", "latencyMs", "goalMs", "replicas", "wantedReplicas", "cpuMilli", "wantedCpuMilli",
                              "utilization", "reward")}
    marks, replicas, cpu, fixed = [], 2, 200, (row["replicas"], row["cpuMilli"])
    for i in range(count):
        at = now - (count - 1 - i) * INTERVAL
        load = top * (0.55 + 0.45 * math.sin(i / count * 9 + 1)) * chance.uniform(0.93, 1.07) + (top * 0.8 if 300 < i < 330 else 0)
        used = min(0.98, load / (top * 1.5) * 4 * 200 / (replicas * cpu))
        latency = goal * (0.25 + 0.12 * chance.random() + 1.6 * max(0, used - 0.45))
        wanted, size, why = decide(used, replicas, cpu, i, latency, goal)
        if why:
            title = "scale up" if wanted > replicas else "scale down" if wanted < replicas else "more CPU"
            marks.append({"time": at, "kind": "decision", "title": title, "text": why,
                          "recommender": row["decidedBy"], "fromReplicas": replicas, "toReplicas": wanted, "fromCpuMilli": cpu,
                          "toCpuMilli": size, "applied": not off})
        if i == count // 3 and row["recommender"] == "ppo":
            marks.append({"time": at, "kind": "policy", "title": "PolicyFound",
                          "text": "a policy of its own decides: in the simulator 0.40% instead of 0.90% of requests late with 1.31 instead of 1.47 times the CPU needed (31 s)",
                          "recommender": "ppo", "fromReplicas": None, "toReplicas": None, "fromCpuMilli": None, "toCpuMilli": None, "applied": True})
        are = fixed if off else (replicas, cpu)
        values = (at, load, latency, goal, are[0], wanted, are[1], size, used, -(1 + 2 * abs(used - 0.6) + 1.5 * math.exp(-i / 200)))
        gap = 500 < i < 506  # Prometheus was away
        for key, value in zip(points, values):
            points[key].append(None if gap and key in ("requestsPerSecond", "latencyMs", "utilization", "reward") else round(value, 3))
        replicas, cpu = wanted, size
    return points, marks


class Fake:
    """What the controller knows. Tests change it and say so by news() and gone()."""

    def __init__(self, count=12, token=None, spaces=None):
        self.rows = {f"{r['namespace']}/{r['name']}": r for r in (make_row(i, count) for i in range(count))}
        self.token, self.spaces = token, spaces  # who may see what: spaces None is all of them
        self.now, self.simulated, self.no_streams, self.ended, self.leading, self.away = NOW, False, False, False, True, False
        self.lock, self.listeners, self.asked, self.times = threading.Lock(), [], [], {}
        self.extra, self.order = {}, {key: i for i, key in enumerate(self.rows)}

    # --- what tests do ---
    def news(self, *keys):
        self.send("mpas", {"now": self.now, "items": [self.rows[k] for k in keys], "gone": []})

    def gone(self, key):
        del self.rows[key]
        self.send("mpas", {"now": self.now, "items": [], "gone": [key]})

    def create(self, row):
        key = f"{row['namespace']}/{row['name']}"
        self.rows[key] = row
        self.news(key)

    def decide(self, key, mark):
        """One more interval of an MPA, with a decision in it."""
        points, marks = self.past(key)
        self.now += INTERVAL
        for name, column in points.items():
            column.append(self.now if name == "time" else mark.get("to" + name[0].upper() + name[1:], column[-1]))
        mark["time"] = self.now
        marks.append(mark)
        self.send("marks", {"namespace": key.split("/")[0], "name": key.split("/")[1], "marks": [mark]})
        self.news(key)

    def send(self, event, data):
        text = f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
        with self.lock:
            for listener in self.listeners:
                listener.put(text)

    def break_streams(self):
        with self.lock:
            for listener in self.listeners:
                listener.put(None)

    # --- what is answered ---
    def past(self, key):
        if key not in self.times:
            self.times[key] = timeline_of(self.rows[key], self.now)
        return self.times[key]

    def visible(self, namespace):
        return [r for r in self.rows.values() if not namespace or r["namespace"] == namespace]

    def learning_of(self, row):
        i = self.order.get(f"{row['namespace']}/{row['name']}", 0)
        held_back = row["decidedBy"] != row["recommender"]
        kind = ("bootstrapping" if row["health"] == "fallback" else "retraining") if held_back else ["own", "general", "learning"][i % 3]
        busy = held_back or kind == "learning"
        message = {"bootstrapping": "bootstrapping 40 %", "retraining": "retraining 40 %, as decisions earn less than they did",
                   "learning": "something better is looked for"}.get(kind, "")
        rewards = [v for v in self.past(f"{row['namespace']}/{row['name']}")[0]["reward"][-300::5]] if i < 50 else []
        return {"namespace": row["namespace"], "name": row["name"], "state": kind, "progress": 0.4 if busy else None,
                "message": message, "policy": None if held_back else "general policy" if kind == "general" else "a policy of its own",
                "sha256": None if held_back else self.versions(row["name"], kind)[0]["sha256"], "fallback": held_back,
                "fallbackReason": f"threshold decides in place of ppo: {message}" if held_back else "", "reward": rewards,
                "since": self.now - 240_000 if held_back else None, **self.version_of(row["name"], kind)}

    def versions(self, name, kind):
        """Of each state of learning what it may have come from, newest first."""
        def version(number, origin, outcome, earned, why=""):
            begun = NOW - 36_000_000 + 7_200_000 * number
            return {"number": number, "origin": origin, "outcome": outcome, "sha256": hashlib.sha256(f"{name} {number}".encode()).hexdigest(),
                    "from": begun, "until": None if outcome == "decides" else begun + 7_200_000, "earned": earned, "intervals": 480 if earned else 0, "why": why}
        past = [version(1, "shipped", "replaced", -1.412), version(2, "bootstrapped", "replaced", -1.187, "its requests cost more CPU than they did"),
                version(3, "retrained", "rolledBack", -1.633, "it earned -1.633 an interval, and the one before -1.187"), version(4, "retrained", "decides", -1.0934)]
        return {"own": past[::-1], "general": [version(1, "shipped", "decides", -1.2)], "learning": [version(1, "kept", "decides", None)],
                "retraining": [version(2, "bootstrapped", "waits", -1.187, "decisions earn less than they did"), past[0]], "bootstrapping": []}[kind]

    def version_of(self, name, kind):
        all_of_it = self.versions(name, kind)
        newest = all_of_it[0] if all_of_it else {"number": None, "origin": None}
        return {"version": newest["number"], "origin": newest["origin"], "rolledBack": sum(v["outcome"] == "rolledBack" for v in all_of_it)}

    def detail(self, key):
        row, learning = copy.deepcopy(self.rows[key]), self.learning_of(self.rows[key])
        when = NOW - 10_955_000
        bad = row["health"] == "trouble"
        row.update({
            "minReplicas": 1, "maxReplicas": 10,
            "containers": [{"name": "main", "cpuMilli": row["cpuMilli"] - 50, "wantedCpuMilli": row["wantedCpuMilli"] - 50, "minCpuMilli": 50, "maxCpuMilli": 1000},
                           {"name": "sidecar", "cpuMilli": 50, "wantedCpuMilli": 50, "minCpuMilli": 50, "maxCpuMilli": 50}],
            "conditions": [{"type": "Ready", "status": "False" if bad else "True", "reason": "FailedGetScale" if bad else "Following", "message": row["message"] if bad else "the goal is followed", "lastTransitionTime": when},
                           {"type": "AbleToScale", "status": "False" if bad else "True", "reason": "FailedGetScale" if bad else "SucceededGetScale", "message": row["message"] if bad else f"{row['target']} has {row['replicas']} replica(s)", "lastTransitionTime": when},
                           {"type": "FallbackActive", "status": "True" if learning["fallback"] else "False", "reason": learning["state"].title() if learning["fallback"] else "NotNeeded", "message": learning["fallbackReason"] or f"{row['decidedBy']} decides", "lastTransitionTime": when}],
            "lastDecision": {"time": self.now - INTERVAL, "recommender": row["decidedBy"], "action": "Rescale", "reason": "p99 213ms near goal 250ms at 81% CPU: replicas 3 → 4"},
            "whatIf": {"since": self.now - 86_400_000, "coreHours": 48.2, "coreHoursAuto": 31.9, "requests": 1_200_345, "lateRequests": 20_412, "lateRequestsAuto": 5_120} if row["mode"] == "Off" else None,
            "learning": {**{k: learning[k] for k in ("state", "progress", "since", "message", "policy", "sha256", "version", "origin", "rolledBack")},
                         "versions": self.versions(row["name"], learning["state"])} if row["recommender"] == "ppo" else None})
        row.update(self.extra.get(key, {}))
        return row

    def answer(self, path, query):
        space = query.get("namespace", "")
        if path == "about":
            return {"version": "0.1.0", "simulated": self.simulated, "user": "jane", "now": self.now, "intervalSeconds": 15, "leading": self.leading, "ended": self.ended}
        if path == "mpas":
            return {"now": self.now, "items": self.visible(space)}
        if path == "learning":
            return {"now": self.now, "items": [self.learning_of(r) for r in self.visible(space) if r["recommender"] == "ppo"]}
        found = re.fullmatch(r"mpas/([^/]+)/([^/]+)(/timeline)?", path)
        key = found and "/".join(urllib.parse.unquote(p) for p in found.groups()[:2])
        if not found or key not in self.rows or (space and space != key.split("/")[0]):
            return None
        if not found[3]:
            return self.detail(key)
        points, marks = self.past(key)
        since = float(query.get("since", "-inf"))
        keep = [i for i, t in enumerate(points["time"]) if t >= since]
        return {"now": self.now, "points": {k: [v[i] for i in keep] for k, v in points.items()}, "marks": [m for m in marks if m["time"] >= since]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message):
        self.reply(status, json.dumps({"error": message}).encode())

    def do_GET(self):
        fake, url = self.server.fake, urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        fake.asked.append(self.path)
        try:
            if url.path == "/":
                html = PAGE.read_bytes()
                return self.reply(200, html, "text/html; charset=utf-8", Content_Security_Policy=policy_of(html.decode()),
                                  X_Content_Type_Options="nosniff", Referrer_Policy="no-referrer")
            if not url.path.startswith("/api/v1/"):
                return self.refuse(404, "there is nothing here: /, /api/v1/…")
            if fake.token and self.headers.get("Authorization") != f"Bearer {fake.token}":
                return self.refuse(401, "a valid token is needed: kubectl create token")
            if fake.spaces is not None and query.get("namespace") not in fake.spaces:
                return self.refuse(403, "jane may not list multidimpodautoscalers in all namespaces: name one by ?namespace=")
            if fake.away:
                return self.refuse(503, "the API server cannot be asked who you are: try again")
            path = url.path.removeprefix("/api/v1/")
            if path == "stream":
                return self.stream(fake, query)
            answer = fake.answer(path, query)
            return self.reply(200, json.dumps(answer).encode()) if answer else self.refuse(404, "there is no such MPA")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def stream(self, fake, query):
        if fake.no_streams:
            return self.refuse(503, "32 streams are open, which is the most: close one")
        news = queue.Queue()
        with fake.lock:
            fake.listeners.append(news)
        self.close_connection = True
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            rows = {"now": fake.now, "items": fake.visible(query.get("namespace", "")), "gone": []}
            self.wfile.write(f": hello\n\nevent: mpas\ndata: {json.dumps(rows)}\n\n".encode())
            while not self.server.ending:
                try:
                    text = news.get(timeout=0.5)
                except queue.Empty:
                    text = b": still here\n\n"
                if text is None:
                    return
                self.wfile.write(text)
        finally:
            with fake.lock:
                fake.listeners.remove(news)


class Server(http.server.ThreadingHTTPServer):
    """Answers for a Fake on a port of its own, until stop()."""
    daemon_threads = True

    def __init__(self, fake, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.fake, self.ending = fake, False
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # a browser that goes away

    def stop(self):
        self.ending = True
        self.fake.break_streams()
        self.shutdown()
        self.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mpas", type=int, default=12)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--token")
    args = parser.parse_args()
    fake = Fake(args.mpas, args.token)
    server = Server(fake, args.port)
    print(server.url)
    while True:
        time.sleep(1)
        key = random.choice(list(fake.rows))
        row = fake.rows[key]
        if row["latencyMs"]:
            row["latencyMs"] = round(row["latencyMs"] * random.uniform(0.9, 1.1), 1)
        fake.news(key)


if __name__ == "__main__":
    main()
