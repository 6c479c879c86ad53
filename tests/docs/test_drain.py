"""The hook that drains an invoker of OpenWhisk, as a kubelet would run it: what it asks, of whom, and for how long it
keeps the invoker. What answers is no invoker, but has its door: POST /disable with its name and password."""
import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
POD = yaml.safe_load((ROOT / "deploy/examples/openwhisk-drain.yaml").read_text())["spec"]["template"]["spec"]
COMMAND = POD["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
LONGEST_ACTION_S = 60  # unless an operator allows more
CREDENTIALS = {"CONFIG_whisk_invoker_username": "somebody", "CONFIG_whisk_invoker_password": "a secret"}


class Door(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(200 if self.path == "/disable" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def invoker():
    server = HTTPServer(("127.0.0.1", 0), Door)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def run_hook(tmp_path, **environment):
    """What it waited for, in seconds; nobody waits here."""
    waited = tmp_path / "waited"
    sleep = tmp_path / "sleep"
    sleep.write_text(f'#!/bin/sh\necho "$1" >> {waited}\n')
    sleep.chmod(0o755)
    done = subprocess.run(COMMAND, env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **environment}, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return [float(line) for line in waited.read_text().split()]


@pytest.mark.parametrize("environment, known_as", [({}, "invoker.user:invoker.pass"), (CREDENTIALS, "somebody:a secret")],
                         ids=["as in the chart", "changed"])
def test_it_takes_no_new_activations_and_ends_those_it_has(invoker, tmp_path, environment, known_as):
    waited = run_hook(tmp_path, PORT=str(invoker.server_port), **environment)
    assert invoker.asked == [("/disable", "Basic " + base64.b64encode(known_as.encode()).decode())]
    assert sum(waited) >= LONGEST_ACTION_S
    assert sum(waited) < POD["terminationGracePeriodSeconds"], "else it is killed before"


def test_what_runs_is_waited_for_though_nobody_answers(invoker, tmp_path):
    """An invoker that is out of order has activations, too."""
    invoker.shutdown()
    invoker.server_close()
    assert sum(run_hook(tmp_path, PORT=str(invoker.server_port))) >= LONGEST_ACTION_S
