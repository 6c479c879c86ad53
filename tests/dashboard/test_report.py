"""Reports that mpactl compare wrote, opened in the dashboard."""
import json
import os
import subprocess

import pytest

from conftest import axe, until
from test_look import shoot

RECOMMENDERS = ["threshold", "hpa"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    subprocess.run([os.environ.get("MPACTL", "build/mpactl"), "compare", "--trace", "diurnal:rate=20,amplitude=0.8,period=1800,span=1800",
                    "--trace", "bursty:rate=5,burst=8,every=600,length=60,span=1800", *(w for r in RECOMMENDERS for w in ("--recommender", r)),
                    "--html", directory / "report.html", "--json", directory / "report.json"], check=True, capture_output=True, timeout=300)
    return directory


def cells(page):
    return page.evaluate("[...document.querySelectorAll('#report-table tbody tr')].map(r => [...r.cells].map(c => c.innerText))")


def plots_are(page, count):
    """They are drawn in a later frame than the table."""
    until(page, f"document.querySelectorAll('.plot canvas').length === {count}")


@pytest.mark.parametrize("kind", ["html", "json"])
def test_it_shows_what_was_written(fake, visit, files, kind):
    page = visit.open(fake.server.url, "#/report", wait="#report-file")
    page.locator("#report-file").set_input_files(files / f"report.{kind}")
    page.wait_for_selector("#report-table")
    rows = json.loads((files / "report.json").read_text())
    sums = [r for r in rows if r["function"] == "*"]
    assert [c[:2] for c in cells(page)] == [[r["trace"], r["recommender"]] for r in sums]
    assert [c[2] for c in cells(page)] == [f"{r['requests']:,}" for r in sums]
    page.locator("#report-each").check()
    assert len(cells(page)) == len(rows)
    page.get_by_role("button", name="Core-hours").click()
    hours = [float(c[7 if kind else 6]) for c in cells(page)]
    assert hours == sorted(hours)
    plots_are(page, 4 if kind == "html" else 0)
    assert axe(page) == []


def test_plots_and_reasons(fake, visit, files):
    page = visit.open(fake.server.url, "#/report", wait="#report-file")
    page.locator("#report-file").set_input_files(files / "report.html")
    page.wait_for_selector(".u-over")
    over = page.locator(".u-over").nth(1)
    box = over.bounding_box()
    over.hover(position={"x": box["width"] / 2, "y": 40})
    text = page.locator(".readout").inner_text()
    assert "00:15:" in text and all(name in text for name in RECOMMENDERS) and ("goal" in text and "CPU" in text)
    shoot(page, "report-open-light")
    page.get_by_label("hpa").uncheck()
    assert "hpa" not in page.locator(".readout tbody").inner_text()
    page.locator("#plot-trace").select_option(index=1)
    plots_are(page, 4)
    page.get_by_role("link", name="Learning", exact=True).click()
    page.locator(".plot canvas").first.wait_for(state="hidden")
    page.get_by_role("link", name="Report", exact=True).click()
    page.locator(".plot canvas").first.wait_for(state="visible")  # it stays open


def test_it_can_be_dropped(fake, visit, files):
    page = visit.open(fake.server.url, "#/report", wait="#report-file")
    page.evaluate("""text => { const data = new DataTransfer(); data.items.add(new File([text], 'mine.json'));
        document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: data})); }""",
                  (files / "report.json").read_text())
    page.wait_for_selector("#report-table")
    assert "mine.json" in page.locator("main").inner_text()


@pytest.mark.parametrize("text, says", [
    ("{", "is no JSON"), ("[]", "no results"), ("<html><script>1</script></html>", "holds no data"), ('{"rows": [[1]]}', 'no list "recommenders"'),
    ('[{"trace": 5}]', "rows[0]: trace should be a text"),
    ('{"recommenders": ["a"], "rows": [["t","*","a",1,0,1,1,1,1,1,1,1]], "reasons": [], "plots": [{"trace": "t"}]}', "plots[0] should have"),
])
def test_other_files_are_told_apart(fake, visit, text, says):
    page = visit.open(fake.server.url, "#/report", wait="#report-file")
    page.locator("#report-file").set_input_files({"name": "other.json", "mimeType": "application/json", "buffer": text.encode()})
    page.locator(".notice", has_text=says).wait_for()
    assert page.locator("#report-table").count() == 0


def test_markup_in_a_report_is_text(fake, visit):
    row = ["<img src=x onerror=window.hacked=1>", "*", "<b>a</b>", 1, 0, 1, 1, 1, 1, 1, 1, 1]
    data = json.dumps({"recommenders": ["<b>a</b>"], "rows": [row], "reasons": [], "plots": []}).replace("<", "\\u003c")
    html = f"<script>window.hacked=1</script><img src=/x><script id='data' type='application/json'>{data}</script>".replace("'", '"')
    page = visit.open(fake.server.url, "#/report", wait="#report-file")
    page.locator("#report-file").set_input_files({"name": "bad.html", "mimeType": "text/html", "buffer": html.encode()})
    page.wait_for_selector("#report-table")
    assert row[0] in page.locator("#report-table").inner_text() and page.evaluate("window.hacked") is None
    assert "/x" not in fake.asked, "nothing it names is loaded"


def test_without_a_token_reports_open_all_the_same(serve, visit, files):
    visit.allow("401")
    page = visit.open(serve(token="secret").server.url, "#/report", wait="#report-file")
    page.locator("#report-file").set_input_files(files / "report.json")
    page.wait_for_selector("#report-table")
