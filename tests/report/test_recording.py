"""tools/recording: what a program shows in a terminal, as an animated SVG; and the one in docs is such a file, of this program."""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTROLLER = ROOT / os.environ.get("CONTROLLER", "build/faasrl-mpa")
SVG = "{http://www.w3.org/2000/svg}"


def record(tmp_path, program, *options, code=0):
    out = tmp_path / "out.svg"
    script = tmp_path / "program.py"
    script.write_text("import sys, time, os\n" + program)
    done = subprocess.run([ROOT / "tools/recording", "--out", out, *options, "--", sys.executable, script],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return ET.parse(out).getroot() if code == 0 else done.stderr


def frames(root):
    """The text of each frame of the film, row by row."""
    lines = {t.get("id"): "".join(t.itertext()) for t in root.iter(f"{SVG}text") if t.get("id")}
    groups = {g.get("id"): {float(u.get("y")): lines[u.get("href")[1:]] for u in g.iter(f"{SVG}use")}
              for g in root.iter(f"{SVG}g") if g.get("id")}
    film, = [g for g in root.iter(f"{SVG}g") if g.get("class") == "s"]
    return [[text for _, text in sorted(groups[u.get("href")[1:]].items())] for u in film]


def test_lines_come_over_time(tmp_path):
    film = frames(record(tmp_path, "for i in range(3):\n  print('line', i, flush=True); time.sleep(0.5)", "--every=0.1",
                         "--hold=1"))
    assert film[-1] == ["line 0", "line 1", "line 2"]
    seen = [len(frame) for frame in film]
    assert seen == sorted(seen) and {1, 2, 3} <= set(seen)
    assert 20 <= len(film) <= 40  # 1.5 s and more, and the hold


def test_what_is_written_over_and_scrolled(tmp_path):
    film = frames(record(tmp_path, "for i in range(9):\n  print(i)\nsys.stdout.write('gone\\r\\033[Kleft <&>\\033[1;31m red\\033[0m!')",
                         "--rows=4", "--every=0.2", "--hold=0"))
    assert film[-1] == ["6", "7", "8", "left <&> red!"]
    root = ET.parse(tmp_path / "out.svg").getroot()
    assert [t.text for t in root.iter(f"{SVG}tspan") if t.get("class") == "B r"] == [" red"]


def test_the_terminal_is_as_wide_as_asked_for(tmp_path):
    film = frames(record(tmp_path, "print(os.get_terminal_size().columns); print('\\033[H\\033[2J' + 'x' * 12)",
                         "--columns=10", "--every=0.2", "--hold=0"))
    assert film[-1] == ["x" * 10, "xx"]


def test_a_program_that_fails_leaves_nothing(tmp_path):
    assert "exit status 3" in record(tmp_path, "sys.exit(3)", code=1)
    assert not (tmp_path / "out.svg").exists()


def test_a_program_without_end_is_ended(tmp_path):
    program = ("import signal\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n"
               "while True:\n  print('on', flush=True); time.sleep(0.2)")
    assert frames(record(tmp_path, program, "--longest=1", "--every=0.2", "--hold=0"))


def test_the_one_in_the_documents():
    path = ROOT / "docs/images/run.svg"
    assert path.stat().st_size < 200_000
    root = ET.parse(path).getroot()
    film = frames(root)
    assert len(film) > 20 and "REASON" in "".join(map(str, film))
    heads = r"NAME |(web|thumbnail|checkout|report|search|total) |FUNCTION | +(hpa|oracle) |\d+[hm]|\d functions|The same |an oracle |Auto would |$"
    assert not [line for frame in film for line in frame if not re.match(heads, line)], "a row was too long for the terminal"
    assert not list(root.iter(f"{SVG}script")) and not re.search(r"https?://(?!www\.w3\.org)", path.read_text())
    assert "docs/images/run.svg" in (ROOT / "README.md").read_text()


def summary(film):
    """Of the last frame: titles, functions and who decided, without figures, and of whom else something is said."""
    last = film[-1]
    table = last[next(i for i, line in enumerate(last) if line.startswith("FUNCTION")):]
    return [line if line.startswith("FUNCTION") else line[:23].rstrip() for line in table]


def test_the_one_in_the_documents_is_of_this_program(tmp_path):
    """Figures aside: they are those of a whole day."""
    out = tmp_path / "run.svg"
    subprocess.run([ROOT / "tools/recording", "--columns", "158", "--out", out, "--title", "make run", "--", CONTROLLER, "--simulate",
                    "--listen=off", "--simulate-duration=5h", "--simulate-speed=0"], check=True, timeout=300, capture_output=True)
    now, kept = frames(ET.parse(out).getroot()), frames(ET.parse(ROOT / "docs/images/run.svg").getroot())
    assert summary(now) == summary(kept) and len(summary(kept)) > 12
