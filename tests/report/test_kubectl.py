"""kubectl mpa against a small API server: what it prints, what it writes, and what it says when it cannot.
tests/e2e/test_kubectl.py asks a real one."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
import yaml

from apiserver import Server, event, mpa

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPACTL = ROOT / os.environ.get("MPACTL", "build/mpactl")
PLUGIN = MPACTL.parent / "kubectl-mpa"
PAUSED = "autoscaling.faasrl.io/paused"


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    mpas = [mpa("web", rate=10, latency="300ms", labels={"app": "a"}), mpa("jobs", replicas=4, cpu="1500m", used=0.1),
            mpa("idle", replicas=1, rate=0.2, latency="8ms"), mpa("far", "other")]
    events = [event("web", "2026-01-31T10:04:00Z", "SuccessfulRescale", "replicas 1 → 2", count=3),
              event("web", "2026-01-31T10:02:00Z", "ResizedInPlace", "1 pod(s): cpu 100m → 200m"),
              event("web", "2026-01-31T10:03:00Z", "ResizedInPlace", "1 pod(s): cpu 200m → 400m")]
    with Server(mpas, events) as running:
        yield running


def run(server, *argv, code=0, stdin=None):
    done = subprocess.run([PLUGIN, *argv[:1], "-s", server.url, *argv[1:]], capture_output=True, text=True, timeout=120,
                          input=stdin)
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert "Sanitizer" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def rows(text):
    lines = text.splitlines()
    return [line.split()[0] for line in lines[1:]]


def test_list_shows_all_of_a_namespace_in_pages(server):
    text = run(server, "list")
    assert text.splitlines()[0].split() == ["NAME", "TARGET", "MODE", "RECOMMENDER", "REPLICAS", "CPU", "LATENCY",
                                            "GOAL", "READY", "AGE"]
    assert rows(text) == ["idle", "jobs", "web"]
    jobs = text.splitlines()[2].split()
    assert jobs[1:9] == ["Deployment/jobs", "Auto", "threshold", "4", "1500m", "118ms", "250ms", "True"]
    assert rows(run(server, "get", "-A")) == ["default"] * 3 + ["other"]
    assert rows(run(server, "list", "-l", "app=a")) == ["web"]
    assert rows(run(server, "list", "--namespace=other")) == ["far"]
    assert "web" in run(server, "list", "web", "--no-headers").splitlines()[0]
    assert "replicas 1 → 2" in run(server, "list", "web", "-owide")


def test_list_for_machines(server):
    names = run(server, "list", "-o", "name").split()
    assert names == [f"multidimpodautoscaler.autoscaling.faasrl.io/{n}" for n in ("idle", "jobs", "web")]
    one = json.loads(run(server, "list", "web", "-o=json"))
    assert one["metadata"]["name"] == "web" and "managedFields" not in one["metadata"]
    whole = yaml.safe_load(run(server, "list", "-Aoyaml"))
    assert whole["kind"] == "List" and len(whole["items"]) == 4
    assert {item["kind"] for item in whole["items"]} == {"MultidimPodAutoscaler"}
    wanted = json.loads(json.dumps(server.mpas["default", "idle"]))
    del wanted["metadata"]["managedFields"]
    assert whole["items"][0] == wanted


def test_top_sorts_by_figures(server):
    text = run(server, "top")
    assert text.splitlines()[0].split()[:6] == ["NAME", "MODE", "REPLICAS", "CPU", "CORES", "USED"]
    assert rows(text) == ["idle", "jobs", "web"]
    web = text.splitlines()[3]
    assert web.split()[1:10] == ["Auto", "2", "400m", "0.80", "62%", "10.0", "300ms", "250ms", "120%"]
    assert "over goal" in web
    assert rows(run(server, "top", "--sort-by=cpu")) == ["jobs", "web", "idle"]
    assert rows(run(server, "top", "--sort-by", "goal")) == ["web", "jobs", "idle"]
    assert rows(run(server, "top", "--sort-by", "rate")) == ["jobs", "web", "idle"]
    del server.mpas["default", "web"]["status"]
    assert rows(run(server, "top", "--sort-by", "latency"))[-1] == "web"  # without a figure: the last
    assert run(server, "top", "-A").splitlines()[4].split()[:2] == ["other", "far"]
    assert run(server, "top", "-o", "json") == run(server, "list", "-o", "json")


def test_top_follows_changes(server, tmp_path):
    out = tmp_path / "out"
    with open(out, "w", encoding="utf-8") as file:
        process = subprocess.Popen([PLUGIN, "top", "-w", "--interval=250ms", "-s", server.url], stdout=file,
                                   stderr=subprocess.PIPE)
    try:
        wait(lambda: "3 MPA(s) in default" in out.read_text())
        server.announce(mpa("web", replicas=7, latency="90ms"))
        wait(lambda: "7 " in out.read_text().split("MPA(s)")[-1])
        server.announce(mpa("new"))
        wait(lambda: "4 MPA(s) in default" in out.read_text())
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)[1]
    assert process.returncode == 0, said
    assert "\033" not in out.read_text()  # a file is no terminal


class Terminal:
    """A program in a terminal of so many columns and rows, and the screens that it has drawn."""
    CLEAR = "\033[H\033[2J"

    def __init__(self, argv, columns, rows):
        self.mine, theirs = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, start_new_session=True)
        os.close(theirs)
        self.text = ""

    def resize(self, columns, rows):
        fcntl.ioctl(self.mine, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def screens(self):
        """Those that are whole, each as its lines."""
        while select.select([self.mine], [], [], 0)[0]:
            self.text += os.read(self.mine, 65536).decode(errors="replace")
        first, *drawn = self.text.split(self.CLEAR)
        assert first == "", "nothing but screens"
        return [screen.replace("\r\n", "\n").split("\n") for screen in drawn[:-1]]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=60)[1]
        os.close(self.mine)
        assert self.process.returncode == 0, said


@pytest.mark.parametrize("columns, rows", [(80, 24), (60, 6), (158, 40)])
def test_top_live_keeps_within_the_screen(server, columns, rows):
    """A line that is too long, or one too many, would move all others."""
    server.mpas["default", "web"]["status"]["lastDecision"]["reason"] = "p99 over goal → " * 20
    for i in range(6):
        server.mpas["default", f"more-{i}"] = mpa(f"more-{i}")
    terminal = Terminal([PLUGIN, "top", "-w", "--interval=250ms", "-s", server.url], columns, rows)
    try:
        wait(terminal.screens, 60)
        server.announce(mpa("idle", replicas=7, rate=0.2))
        wait(lambda: any(re.search(r"^idle +Auto +7 ", line) for line in terminal.screens()[-1]), 60)
        for screen in terminal.screens():
            *lines, end = screen
            assert end == "" and len(lines) < rows and max(map(len, lines)) <= columns
            assert lines[0].endswith("9 MPA(s) in default") and lines[1].startswith("NAME") and lines[2].startswith("idle")
            assert len(lines) == min(11, rows - 1)
            assert rows > 11 or lines[-1] == f"… {9 - (rows - 4)} more"
        terminal.resize(40, rows)
        wait(lambda: max(map(len, terminal.screens()[-1])) == 40, 60)
    finally:
        terminal.end()


def wait(probe, timeout=20):
    end = time.monotonic() + timeout
    while not probe():
        assert time.monotonic() < end, "did not come"
        time.sleep(0.05)


def test_explain(server):
    text = run(server, "explain", "web", "--last", "2")
    assert text.splitlines()[0] == ("default/web: Deployment web, p99 below 250ms, 1 to 4 replicas, mode Auto, "
                                    "decided by threshold")
    assert "now: 2 replica(s), function 400m" in text and "… 1 before these" in text
    assert text.index("cpu 200m → 400m") < text.index("replicas 1 → 2 (3 times)")


@pytest.mark.parametrize("form, read", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_explain_for_machines(server, form, read):
    server.mpas["default", "web"]["status"]["conditions"].append(
        {"type": "ResizePending", "status": "True", "reason": "Deferred", "message": "the node is full",
         "lastTransitionTime": "2026-01-31T10:05:00Z"})
    web, = read(run(server, "explain", "web", "-o", form, "--last=2"))
    past = {(i["time"], i["source"], i["what"]): i for i in read(run(server, "history", "web", "-o", form))}
    assert web["about"] == run(server, "explain", "web").splitlines()[0]
    assert (web["namespace"], web["name"], web["replicas"]) == ("default", "web", 2)
    assert web["containers"] == [{"name": "function", "cpu": "400m"}]
    assert (web["latencyMs"], web["requestsPerSecond"]) == (118, 10)
    assert [i["what"] for i in web["conditions"]] == ["ResizePending"]  # Ready is as it should be
    assert len(web["events"]) == 2 and web["earlierEvents"] == 1
    for item in (web["lastDecision"], *web["conditions"], *web["events"]):
        assert item == past[item["time"], item["source"], item["what"]]
    del server.mpas["default", "idle"]["status"]
    both = read(run(server, "explain", "web", "idle", "-o", form))
    assert [i["name"] for i in both] == ["web", "idle"]
    assert both[1]["lastDecision"] is both[1]["latencyMs"] is both[1]["replicas"] is None and both[1]["containers"] == []


def test_history_is_in_order_of_time(server):
    text = run(server, "history", "web")
    order = ["Created", "Ready", "cpu 100m", "cpu 200m", "replicas 1 → 2 (3 times)", "p99 of web over goal"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert len(text.splitlines()) == 6
    assert len(run(server, "history", "web", "--last=2").splitlines()) == 2
    assert run(server, "history", "web", "--since", "1m") == ""  # it was long ago
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        items = read(run(server, "history", "web", "-o", form))
        assert [i["source"] for i in items] == ["object", "condition", "event", "event", "event", "decision"]
        assert items[4] == {"time": "2026-01-31T10:04:00Z", "source": "event", "what": "SuccessfulRescale",
                            "message": "replicas 1 → 2", "count": 3}


def test_pause_and_resume(server):
    def annotation(name):
        return server.mpas["default", name]["metadata"].get("annotations", {}).get(PAUSED)

    assert run(server, "pause", "web", "jobs") == "mpa/web paused\nmpa/jobs paused\n"
    assert (annotation("web"), annotation("jobs"), annotation("idle")) == ("true", "true", None)
    assert "Auto, paused" in run(server, "top")
    writes = [s for s in server.seen if s[0] == "PATCH"]
    assert "already" in run(server, "pause", "web")
    assert [s for s in server.seen if s[0] == "PATCH"] == writes  # nothing to write
    assert run(server, "resume", "--all").count("resumed") == 2
    assert (annotation("web"), annotation("jobs"), annotation("idle")) == (None, None, None)
    assert run(server, "pause", "-l", "app=a") == "mpa/web paused\n"


def test_credentials_and_choices(server, tmp_path):
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump({
        "current-context": "a", "clusters": [{"name": "here", "cluster": {"server": server.url}},
                                             {"name": "dead", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "first"}}, {"name": "v", "user": {"token": "second"}}],
        "contexts": [{"name": "a", "context": {"cluster": "dead", "user": "u", "namespace": "other"}},
                     {"name": "near", "context": {"cluster": "here", "user": "v"}}]}))

    def get(*argv):
        done = subprocess.run([PLUGIN, "list", "--kubeconfig", config, *argv], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    assert get("--request-timeout", "2s")[0] == 1
    code, text = get("--cluster", "here")
    assert code == 0 and rows(text) == ["far"]  # the context's namespace
    assert server.seen[-1][2] == "Bearer first"
    code, text = get("--context", "near")
    assert code == 0 and rows(text) == ["idle", "jobs", "web"] and server.seen[-1][2] == "Bearer second"
    assert rows(get("--context=near", "-n", "other")[1]) == ["far"]
    assert get("--cluster=here", "--user=v")[0] == 0 and server.seen[-1][2] == "Bearer second"
    assert get("-s", server.url, "--token", "own", "-n", "default")[0] == 0 and server.seen[-1][2] == "Bearer own"
    assert "there is no context" in get("--context", "b")[1]
    assert "there is no cluster" in get("--cluster", "b")[1]


@pytest.mark.parametrize("argv, code, part", [
    ([], 2, "Usage"),
    (["dance"], 2, "there is no such command"),
    (["explain"], 2, "no name"),
    (["explain", "We/b"], 2, "is no name of an MPA"),
    (["list", "-n", "../x"], 2, "is no name of a namespace"),
    (["list", "-A", "web"], 2, "names are of one namespace"),
    (["list", "-x"], 2, "-x: no such option"),
    (["list", "--watch"], 2, "--watch: no such option"),
    (["list", "-o", "xml"], 2, "wide, json, yaml or name"),
    (["top", "--sort-by", "age"], 2, "name, cpu, replicas"),
    (["top", "--watch=perhaps"], 2, "neither true nor false"),
    (["list", "-n"], 2, "-n needs a value"),
    (["pause"], 2, "--all"),
    (["top", "-w", "-o", "json"], 2, "leave out --output=json"),
    (["history", "web", "-o", "name"], 2, "json, yaml or wide"),
    (["explain", "web", "-o", "name"], 2, "json, yaml or wide"),
    (["history", "web", "jobs"], 2, "more than one name"),
    (["simulate"], 2, "-f"),
    (["completion", "csh"], 2, "bash, zsh or fish"),
    (["list", "--request-timeout", "soon"], 2, "--request-timeout"),
    (["list", "-s", "localhost:80"], 1, "must begin with https://"),
    (["list", "-s", "http://127.0.0.1:1"], 1, "127.0.0.1"),
])
def test_wrong_usage(argv, code, part):
    done = subprocess.run([PLUGIN, *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert part in done.stderr


def test_what_is_not_there(server):
    text = run(server, "explain", "nothing", code=1)
    assert 'there is no MultidimPodAutoscaler "nothing" in namespace default' in text and "list -A" in text
    assert "but in other: name it with -n" in run(server, "history", "far", code=1)
    assert "No MultidimPodAutoscaler in namespace empty" in subprocess.run(
        [PLUGIN, "list", "-n", "empty", "-s", server.url], capture_output=True, text=True, check=True).stderr
    with Server(installed=False) as bare:
        for command in (["list"], ["top"], ["top", "-w"], ["explain", "web"], ["pause", "web"]):
            said = run(bare, *command, code=1)
            assert "has no multidimpodautoscalers" in said and "kubectl apply --server-side -f crds" in said


def test_simulate(server, tmp_path):
    manifest = tmp_path / "mpa.yaml"
    manifest.write_text(yaml.safe_dump(mpa("web")))
    text = run(server, "simulate", "-f", manifest, "--trace", "poisson:rate=5,span=60")
    assert "threshold" in text and "ORACLE" in text
    from_cluster = run(server, "simulate", "web", "--trace", "poisson:rate=5,span=60")
    assert from_cluster == text
    assert run(server, "simulate", "-f", "-", "--trace", "poisson:rate=5,span=60", stdin=manifest.read_text()) == text
    usual = run(server, "simulate", "-f", manifest, "--recommender", "fixed")
    assert "diurnal" in usual and "bursty" in usual
    manifest.write_text("kind: MultidimPodAutoscaler\n")
    assert "apiVersion" in run(server, "simulate", "-f", manifest, code=1)


def completed(*words):
    out = subprocess.run(
        [PLUGIN, "__complete", *words], capture_output=True, text=True, timeout=60, check=True).stdout
    *lines, directive = out.splitlines()
    return [line.split("\t")[0] for line in lines], directive


def test_completion_words(server):
    at = ["-s", server.url]
    assert completed("pa") == (["pause"], ":4")
    assert completed("explain", *at, "") == (["idle", "jobs", "web"], ":4")
    assert completed("explain", *at, "w") == (["web"], ":4")
    assert completed("pause", *at, "web", "") == (["idle", "jobs"], ":4")
    assert completed("explain", *at, "-n", "other", "") == (["far"], ":4")
    assert completed("explain", *at, "-n", "o") == (["other"], ":4")
    assert completed("top", "--sort-by", "r") == (["replicas", "rate"], ":4")
    assert completed("list", "-o", "") == (["wide", "json", "yaml", "name"], ":4")
    assert completed("explain", "-o", "y") == (["yaml"], ":4")
    assert completed("top", "--w") == (["--watch"], ":4")
    assert completed("simulate", "-f", "") == ([], ":0")
    assert completed("completion", "") == (["bash", "zsh", "fish"], ":4")
    assert completed("dance", "") == ([], ":4")
    # as kubectl calls it
    done = subprocess.run([PLUGIN.parent / "kubectl_complete-mpa", "explain", *at, "w"], capture_output=True, text=True, check=True)
    assert done.stdout == "web\n:4\n"
    assert completed("explain", "-s", "http://127.0.0.1:1", "") == ([], ":4")  # nobody is there


def test_completion_in_bash(server):
    script = f"""
    source <({PLUGIN} completion bash)
    COMP_WORDS=({PLUGIN} explain -s {server.url} w) COMP_CWORD=4
    _kubectl_mpa; echo "${{COMPREPLY[*]}}"
    COMP_WORDS=({PLUGIN} re) COMP_CWORD=1
    _kubectl_mpa; echo "${{COMPREPLY[*]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "web\nresume\n" and done.stderr == ""


@pytest.fixture
def shell_env(tmp_path):
    return dict(os.environ, PATH=f"{PLUGIN.parent}:{os.environ['PATH']}", HOME=str(tmp_path), TERM="dumb", LC_ALL="C.UTF-8")


def script_of(shell, tmp_path):
    path = tmp_path / f"script.{shell}"
    path.write_text(subprocess.run([PLUGIN, "completion", shell], capture_output=True, text=True, check=True).stdout)
    return path


def test_completion_in_fish(server, shell_env, tmp_path):
    def offered(line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script_of('fish', tmp_path)}; complete -C '{line}'"],
                              env=shell_env, capture_output=True, text=True, check=True, timeout=120)
        assert done.stderr == ""
        return [word.split("\t")[0] for word in done.stdout.splitlines()]

    assert offered(f"kubectl-mpa explain -s {server.url} w") == ["web"]
    assert offered("kubectl-mpa re") == ["resume"]
    (tmp_path / "here.yaml").write_text("")
    assert f"{tmp_path}/here.yaml" in offered(f"kubectl-mpa simulate -f {tmp_path}/he")


def test_completion_in_zsh(server, shell_env, tmp_path):
    """In a terminal, as zsh completes nowhere else: Tab, and then the whole line is printed instead of run."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(["zsh", "-f", "-i"], env=shell_env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    told = ""

    def type_in(keys, *, until):
        nonlocal told
        os.write(mine, keys.encode())
        told, end = "", time.monotonic() + 120
        while not re.search(until, told, re.M):
            assert time.monotonic() < end, told
            if select.select([mine], [], [], 0.2)[0]:
                told += os.read(mine, 65536).decode(errors="replace").replace("\r", "")

    try:
        begin = f"autoload -Uz compinit && compinit -u -D && source {script_of('zsh', tmp_path)} && print rea''dy"
        type_in(f"{begin}\n", until="^ready$")
        for begun, whole in ((f"explain -s {server.url} w", f"explain -s {server.url} web"), ("re", "resume")):
            type_in(f"kubectl-mpa {begun}\t\x01print -r -- \n", until=f"^kubectl-mpa {re.escape(whole)}$")
    finally:
        process.kill()
        process.wait()
        os.close(mine)
