"""The report of mpactl compare in a real browser: it is drawn without an error, asks nobody for anything, can
be read in light, dark and on a phone, and everything can be reached by mouse and keyboard. Screenshots are
left in build/report."""
import json
import re

import pytest

from browser import Page
from study import BURSTY, DAY, OUT, azure, memory_manifest, recommenders, run, traces

NAMES = ("threshold", "hpa", "hpa:target=0.5,cpu_milli=500", "oracle")
CELLS = "[...document.querySelectorAll('#table tbody tr')].map(r => [...r.cells].map(c => c.innerText))"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    trace = azure(directory, [("busy", 600, 50), ("calm", 12, 200), ("rare", 1, 20)])
    file = directory / "report.html"
    done = run("compare", *traces(DAY, BURSTY, trace), *recommenders(*NAMES), "--html", file, "--json",
               directory / "report.json")
    assert done.returncode == 0, done.stderr.decode()
    return file


@pytest.fixture(scope="module")
def browser():
    page = Page()
    yield page
    page.close()


@pytest.fixture
def page(browser, report):
    browser.requests.clear()
    browser.troubles.clear()
    browser.look()
    browser.open(report)
    yield browser
    assert browser.troubles == []
    assert {r for r in browser.requests if not r.startswith("data:")} == {report.resolve().as_uri()}


def readout(page):
    return page.run("document.querySelector('#readout').innerText")


def test_it_shows_what_the_json_says(page, report):
    rows = json.loads((report.parent / "report.json").read_text())
    cells = page.run(CELLS)
    assert [c[:2] for c in cells] == [[r["trace"], r["recommender"]] for r in rows if r["function"] == "*"]
    for c, r in zip(cells, (r for r in rows if r["function"] == "*")):
        assert c[2] == f"{r['requests']:,}" and c[-1] == f"{r['cost_vs_oracle']:.2f}"
    page.click("#each")
    assert len(page.run(CELLS)) == len(rows)
    page.choose("#result-trace", rows[0]["trace"])
    assert [c[0] for c in page.run(CELLS)] == ["all"] * 4 + ["diurnal"] * 4


def test_titles_sort(page):
    def column():
        return [float(c[-1]) for c in page.run(CELLS)]
    title = "#table th:last-child button"
    page.click(title)
    up = column()
    assert up == sorted(up) and page.run("document.querySelector('#table [aria-sort]').ariaSort") == "ascending"
    page.run(f"document.querySelector('{title}').focus()")
    page.press("Enter", text="\r")
    assert column() == sorted(up, reverse=True), "by keyboard too"


def test_plots_have_a_line_for_each_recommender(page):
    lines = page.run("[...document.querySelectorAll('#plots svg')].map(s => s.querySelectorAll('.series').length)")
    assert lines == [1, 4, 4, 4]
    assert page.run("[...document.querySelectorAll('.series')].every(p => p.getTotalLength() > 500)")
    assert page.run("document.querySelectorAll('.goal').length") == 1
    page.click("#legend input")
    assert page.run("document.querySelectorAll('#plots .series').length") == 1 + 3 * 3
    assert NAMES[0] not in readout(page)
    page.choose("#plot-trace", page.run("document.querySelector('#plot-trace').options[2].value"))
    assert page.run("[...document.querySelector('#plot-function').options].map(o => o.value)") == ["busy", "calm", "rare"]
    page.choose("#plot-function", "rare")
    assert "goal 40 ms" in readout(page), "twice its 20 ms"


def test_pointing_reads_off_figures_and_reasons(page):
    x, y, width, height = page.place("#plots svg:last-child")
    page.move(x + 58 + (width - 68) / 2 + 1, y + height / 2)
    text = readout(page)
    assert "00:30:00 to 00:30:15" in text and "requests per second, goal " in text
    assert all(name in text for name in NAMES) and ("within goal" in text or "over goal" in text)
    page.run("document.querySelector('#plots').focus()")
    page.press("End")
    assert "00:59:45 to 01:00:00" in readout(page)
    page.press("ArrowLeft")
    assert "00:59:30 to 00:59:45" in readout(page)
    page.press("Home")
    assert "00:00:00 to 00:00:15" in readout(page)


def test_it_makes_a_picture(page):
    """That of docs/compare.md."""
    page.look(width=1000, height=1080)
    x, y, width, height = page.place("#plots svg")
    page.run("scrollTo(0, document.querySelector('#plots-section').offsetTop)")
    page.move(x + width * 0.32, 400)
    page.screenshot(OUT / "report.png")
    assert (OUT / "report.png").stat().st_size < 200_000


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read(page, dark):
    """Contrast as WCAG asks for: 4.5 for text, 3 for lines."""
    page.look(dark=dark)
    colours = page.run("""(() => { const e = document.createElement('i'); document.body.append(e);
        const rgb = name => { e.style.color = `var(--${name})`; return getComputedStyle(e).color.match(/\\d+/g).map(Number); };
        return Object.fromEntries(['page', 'panel', 'text', 'soft', 'bad', 'accent',
                                   ...[0, 1, 2, 3, 4, 5, 6, 7].map(n => 'c' + n)].map(n => [n, rgb(n)])); })()""")

    def light(rgb):
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        low, high = sorted((light(colours[a]), light(colours[b])))
        return (high + 0.05) / (low + 0.05)
    assert (light(colours["page"]) < 0.05) == dark
    for name in ("text", "soft", "bad"):
        assert min(contrast(name, "page"), contrast(name, "panel")) >= 4.5, name
    for n in range(8):
        assert contrast(f"c{n}", "page") >= 3, n
    page.run("scrollTo(0, document.querySelector('#plots-section').offsetTop - 40)")
    page.screenshot(OUT / f"report-{'dark' if dark else 'light'}.png")


def test_it_fits_a_phone(page):
    page.look(width=390, height=844)
    assert page.run("document.scrollingElement.scrollWidth") <= 390
    assert page.run("Math.min(...[...document.querySelectorAll('#plots svg')].map(s => s.clientWidth))") > 300
    page.screenshot(OUT / "report-phone.png")
    page.run("scrollTo(0, document.querySelector('#plots').offsetTop)")
    page.screenshot(OUT / "report-phone-plots.png")


def test_it_can_be_told_apart_without_eyes(page):
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in tree if not n["ignored"]]
    for role in ("combobox", "checkbox", "button", "table", "image", "region", "group"):
        assert [n for r, n in named if r == role], role
        assert all(n for r, n in named if r == role), f"a {role} has no name"
    assert [n for r, n in named if r == "heading"][:3] == ["Recommenders on simulated load", "Results", "Over time"]
    assert page.run("document.title && document.documentElement.lang") == "en"


def test_names_are_text_and_nothing_else(browser, tmp_path):
    name = "<!--<script>alert(1)<img src=x onerror=alert(2)>&amp;.txt"
    (tmp_path / name).write_text("5\n" * 60)
    file = tmp_path / "report.html"
    assert run("compare", "--trace", f"rps:{tmp_path}/{name}", "--html", file).returncode == 0
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', file.read_text(), re.S)[1]
    assert "<" not in data
    browser.troubles.clear()
    browser.look()
    browser.open(file)
    assert browser.run(CELLS)[0][0] == f"rps:{name}"
    assert browser.troubles == []


def test_memory_is_shown_where_an_mpa_sets_it(browser, report, tmp_path):
    (tmp_path / "mpa.yaml").write_text(memory_manifest("97Mi", "97Mi"))
    file, table = tmp_path / "memory.html", "[...document.querySelectorAll('#table th')].map(h => h.innerText)"
    done = run("compare", *traces(BURSTY), *recommenders("threshold", "oracle"), "--mpa", tmp_path / "mpa.yaml",
               "--html", file, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr.decode()
    rows = json.loads((tmp_path / "out.json").read_text())
    browser.troubles.clear()
    browser.look()
    browser.open(file)
    assert browser.run(table)[-3:] == ["memory GiB-hours", "memory used", "kills"]
    cells = browser.run(CELLS)
    assert cells[0][-1] == f"{rows[0]['memory_kills']:,}" != "0" and cells[1][-3:] == ["–"] * 3
    assert browser.troubles == []
    browser.open(report)
    assert browser.run(table)[-1] == "÷ oracle"


def test_many_functions_make_a_small_file(browser, tmp_path):
    trace = azure(tmp_path, [(f"function{i}", i % 40, 30) for i in range(1, 400)], minutes=120)
    file = tmp_path / "report.html"
    done = run("compare", *traces(trace), *recommenders("threshold", "hpa", "vpa"), "--no-oracle", "--html", file)
    assert done.returncode == 0, done.stderr.decode()
    assert 200_000 < file.stat().st_size < 2_000_000
    browser.troubles.clear()
    browser.look()
    browser.open(file)
    shown = browser.run("document.querySelector('#plot-function').options.length")
    assert f"The {shown} of 399 functions with most requests are plotted" in browser.run(
        "document.querySelector('#note').innerText")
    assert browser.troubles == []
