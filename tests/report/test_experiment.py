"""mpactl experiment: what it prints and writes, that chance is the seed's alone, and what is said when something is wrong."""
import json
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest

from study import MPACTL, run

TINY = ["--effort", "0.001", "--seeds", "2"]
KEYS = {"name", "title", "document", "seeds", "seed", "effort", "seconds", "headline", "rows", "lines"}
ROW = {"group", "what", "unit", "document", "aim", "bound", "mean", "spread", "values", "reached", "otherwise"}


def experiment(*argv):
    done = run("experiment", *argv)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b"", "a bar is only for terminals"
    return done.stdout.decode()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What is printed, and a directory with files, of the same run."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    return experiment("mp3", *TINY, "--out", out, "--json", out.parent / "all.json"), out


def test_names_are_listed_with_their_titles():
    listed = experiment()
    assert listed == experiment("--help")
    assert re.search(r"^  mp3 +Three ways to learn", listed, re.M) and "--effort" in listed


def test_figures_are_printed_in_groups(written):
    lines = written[0].splitlines()
    assert lines[0].startswith("mp3: ") and "seeds: 2" in lines[0]
    assert lines[1].split() == ["FIGURE", "DOCUMENT", "AIM", "OURS", "REACHED"]
    assert "  reward of a decision" in lines and not any(line != line.rstrip() for line in lines)
    assert re.search(r"^    PPO +– +– +-?\d+\.\d+ ± \d+\.\d+ +–$", written[0], re.M)


def test_json_has_the_figures_of_each_seed(written):
    (result,) = json.loads((written[1].parent / "all.json").read_text())
    assert set(result) == KEYS
    assert (result["name"], result["seeds"], result["seed"], result["effort"]) == ("mp3", 2, 1, 0.001)
    for row in result["rows"]:
        assert set(row) == ROW and len(row["values"]) == 2
        known = [v for v in row["values"] if v is not None]
        assert row["mean"] == (pytest.approx(sum(known) / len(known)) if known else None)
        assert (row["reached"] is None) == (row["aim"] is None) == (row["bound"] is None)
        if row["aim"] == "at least":
            assert row["reached"] == (len(known) == 2 and row["mean"] >= row["bound"])
    for line in result["lines"]:
        assert len(line["x"]) == len(line["mean"]) == len(line["low"]) == len(line["high"]) > 0
        assert all(low <= mean <= high for low, mean, high in zip(line["low"], line["mean"], line["high"]))


def test_a_page_a_plot_and_an_overview_are_written(written):
    out = written[1]
    assert {f.name for f in out.iterdir()} == {"README.md", "mp3.md", "mp3.svg", "mp3.json"}
    page = (out / "mp3.md").read_text()
    result = json.loads((out / "mp3.json").read_text())
    assert set(result) == KEYS - {"lines"}
    assert page.startswith(f"# {result['title']}\n\n{result['document']}\n")
    assert "](mp3.svg)" in page and "mpactl experiment mp3 --seeds 2 --seed 1 --effort 0.001\n" in page
    for row in result["rows"]:
        assert f"| **{row['group']}** |" in page
        assert re.search(rf"^\| {re.escape(row['what'])} \|.*\| (yes|no|–) \|$", page, re.M)
        if row["reached"] is False:
            assert re.search(rf"^- {re.escape(row['group'])}: (.*, )?{re.escape(row['what'])}(, .*)?: "
                             rf"{re.escape(row['otherwise'])}$", page, re.M)
    labels = {t.text for t in xml.parse(out / "mp3.svg").getroot().iter("{http://www.w3.org/2000/svg}text")}
    assert {"PPO", "REINFORCE", "Q-learning", "SLO preservation", "CPU utilisation", "episodes"} <= labels
    aims = [r["reached"] for r in result["rows"] if r["aim"]]
    index = (out / "README.md").read_text()
    assert re.search(rf"^\| \[mp3\]\(mp3.md\): .* \| {sum(aims)} of {len(aims)} \| 2, effort 0.001 \|$", index, re.M)


def test_the_overview_tells_what_others_left_there(tmp_path, written):
    for name in ("mp3.json", "mp3.md"):
        (tmp_path / name).write_text((written[1] / name).read_text().replace("0.001", "0.5"))
    (tmp_path / "other.json").write_text("{}")
    experiment("mp3", *TINY, "--out", tmp_path)
    index = (tmp_path / "README.md").read_text()
    assert index == (written[1] / "README.md").read_text()


def test_results_depend_on_the_seed_alone(tmp_path, written):
    experiment("mp3", "mp3", *TINY, "--jobs", "1", "--json", tmp_path / "b")
    one, two = (json.loads(f.read_text()) for f in (written[1].parent / "all.json", tmp_path / "b"))
    assert len(two) == 1, "named twice, done once"
    assert one[0].pop("seconds") >= 0 and two[0].pop("seconds") >= 0
    assert one == two


def test_ppo_decides_by_a_policy_or_by_its_core(tmp_path):
    """The policy counts where ppo decides: a file that is none is refused there, and is nobody's business elsewhere."""
    core, bad = tmp_path / "core", tmp_path / "bad"
    bad.write_text("no policy")
    assert run("policy", "--updates", "1", "--jobs", "1", "--out", core).returncode == 0
    experiment("ppo-faasrm", *TINY, "--policy", core, "--out", tmp_path / "out")
    result = json.loads((tmp_path / "out/ppo-faasrm.json").read_text())
    (row,) = [r for r in result["rows"] if r["what"].startswith("updates of the general policy")]
    assert row["values"] == [1, 1]
    refused = run("experiment", "ppo-faasrm", *TINY, "--policy", bad)
    assert (refused.returncode, refused.stdout) == (1, b"") and f"--policy {bad}: " in refused.stderr.decode()
    experiment("mp3", *TINY, "--policy", bad)


def test_an_interrupt_leaves_files_as_they_were(tmp_path):
    (tmp_path / "mp3.md").write_text("old")
    with subprocess.Popen([MPACTL, "experiment", "mp3", "--effort", "100", "--out", tmp_path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout) == (1, b"")
    assert stderr == b"mpactl: experiment mp3: it was ended\n"
    assert {f.name: f.read_text() for f in tmp_path.iterdir()} == {"mp3.md": "old"}


@pytest.mark.parametrize("argv, status, says", [
    (["mp4"], 2, "no \"mp4\": choose mp3"),
    (["mp3", "mp4"], 2, "no \"mp4\""),
    (["--seeds", "2"], 2, "none is named"),
    (["--seeds", "2", "mp3"], 2, "\"mp3\""),
    (["mp3", "--effort", "0"], 2, "--effort"),
    (["mp3", "--seeds", "1.5"], 2, "whole numbers"),
    (["mp3", "--seed", "-1"], 2, "--seed"),
    (["mp3", "--speed", "2"], 2, "--speed"),
    (["mp3", "--effort", "100", "--out", "/nowhere/out"], 1, "--out /nowhere/out"),
    (["mp3", "--effort", "100", "--out", "/dev/null"], 1, "--out /dev/null"),
    (["mp3", "--effort", "100", "--json", "/nowhere/out.json"], 1, "--json /nowhere/out.json"),
    (["mp3", "--effort", "100", "--json", "/"], 1, "--json /"),
])
def test_what_is_wrong_is_told_at_once(argv, status, says):
    done = run("experiment", *argv)
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    assert says in done.stderr.decode() and done.stderr.startswith(b"mpactl: ")
