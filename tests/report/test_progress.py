"""The bar of long runs: drawn in a terminal only, with the time that is left, and gone in the end."""
import os
import pty
import re
import subprocess
import termios
import threading

from study import MPACTL, recommenders, traces

FRAME = re.compile(r"simulating \[(#*)(\.*)\] +(\d+)% (\d+) of (\d+), (?:\d+s|\d+m\d\ds|\d+h\d\dm) left")
ERASE = "\x1b[K"


def in_terminal(*argv):
    """The exit status, stdout, and what the terminal got as stderr."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # as it was written
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    shown = []

    def follow():
        try:
            while data := os.read(ours, 65536):
                shown.append(data)
        except OSError:  # nobody has it open any more
            pass

    reader = threading.Thread(target=follow)
    reader.start()
    done = subprocess.run([MPACTL, *argv], stdout=subprocess.PIPE, stderr=theirs, timeout=300)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done.returncode, done.stdout.decode(), b"".join(shown).decode()


def study(span_s):
    return ["compare", *traces(f"poisson:rate=1000,span={span_s}", f"bursty:rate=500,burst=3,every=600,length=60,span={span_s}"),
            *recommenders("threshold", "hpa"), "--jobs", "1"]


def long_study():
    """One long enough for a bar, on whatever machine."""
    for span_s in (1800, 7200, 28800, 115200):
        status, out, shown = in_terminal(*study(span_s))
        assert status == 0
        if shown.count("\r") > 3:
            return out, shown
    raise AssertionError("no bar was drawn")


def test_a_long_run_shows_how_far_it_is_and_how_long_it_takes_still():
    out, shown = long_study()
    first, *frames, last = shown.split("\r")
    assert first == "" and last == ERASE, "it begins with a line of its own, and leaves none"
    before = 0
    for frame in frames:
        assert frame.endswith(ERASE) and frame.count(ERASE) == 1
        match = FRAME.fullmatch(frame.removesuffix(ERASE))
        assert match, frame
        filled, rest, (percent, done, total) = match[1], match[2], map(int, match.groups()[2:])
        assert len(filled) + len(rest) == 30 and abs(len(filled) - 30 * done / total) <= 1
        assert abs(percent - 100 * done / total) <= 1 and done >= before
        before = done
    assert before > 0
    assert "RECOMMENDER" in out and "simulating [" not in out and "\x1b" not in out


def test_there_is_no_bar_for_a_short_run_nor_without_a_terminal():
    assert in_terminal("compare", *traces("poisson:rate=1,span=60"), *recommenders("threshold"))[::2] == (0, "")
    done = subprocess.run([MPACTL, *study(3600)], capture_output=True, timeout=300)
    assert done.returncode == 0 and done.stderr == b""
