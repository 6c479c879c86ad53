"""docs/tutorial.md, command by command in one shell, with the output that it promises; but not the last, as the cluster is that
of all tests."""
import os
import re
import signal
import subprocess
import threading

import pytest

from harness import ENV, PROMETHEUS, ROOT, RUN, die_with_parent, kubectl, wait

pytestmark = pytest.mark.usefixtures("real_pods")
PAGE = (ROOT / "docs/tutorial.md").read_text()
END = "::end of output::"
COMMAND_S = 200
LAST = "make -s cluster-down"


def blocks():
    """Commands of the page in order, each with the output that follows it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append([line[2:], []])
            else:
                found[-1][1].append(line)
    return found


def promised(lines):
    """As a pattern: … is anything, and blanks are any blanks."""
    words = " ".join(lines).split()
    return re.compile(r"\s*".join(re.escape(w).replace("…", ".*?") for w in words), re.S)


class Shell:
    """One shell for all of them, as a reader has. What it has started ends with it."""

    def __init__(self):
        def begin():
            os.setsid()
            die_with_parent()
        env = dict(ENV, FAASRL_PROMETHEUS=PROMETHEUS, FAASRL_CLUSTER_DIR=str(RUN))
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            env.pop(name, None)
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=env, preexec_fn=begin)

    def run(self, command):
        """Exit code and output."""
        timer = threading.Timer(COMMAND_S, self.end)
        timer.start()
        self.process.stdin.write(f"{command}\necho \"{END} $?\"\n")
        self.process.stdin.flush()
        told = []
        for line in self.process.stdout:
            before, sign, code = line.partition(END)
            told.append(before)
            if sign:
                timer.cancel()
                return int(code), "".join(told)
        raise AssertionError(f"not within {COMMAND_S} s: {command}\n{''.join(told)}")

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


@pytest.fixture
def shell():
    kubectl("delete", "namespace", "tutorial", "--ignore-not-found")
    made = Shell()
    yield made
    made.end()
    made.process.wait()
    kubectl("delete", "mpa", "--all", "-n", "tutorial", "--ignore-not-found")
    kubectl("delete", "namespace", "tutorial", "--ignore-not-found", "--wait=false")


def test_the_page_does_what_it_says(shell):
    commands = blocks()
    assert len(commands) > 20 and sum(1 for _, lines in commands if lines) > 12
    assert commands[0][0].endswith(" cluster-up") and commands.pop() == [LAST, []]
    for command, lines in commands:
        code, told = shell.run(command)
        assert code == 0, f"$ {command}\nexit {code}\n{told}"
        assert promised(lines).search(told), f"$ {command}\n{told}\nis not what the page promises:\n" + "\n".join(lines)
    wait("the namespace is gone", lambda: not kubectl(
        "get", "namespace", "tutorial", "--ignore-not-found", "-o", "name").stdout, 60)


def test_a_promise_can_be_broken():
    assert promised(["NAME … READY", "a … True"]).search("NAME   AGE  READY\na      4m   True\n")
    assert not promised(["NAME … READY", "a … True"]).search("NAME   AGE  READY\nb      4m   False\n")
    assert not promised(["1 200m"]).search("1 300m")
