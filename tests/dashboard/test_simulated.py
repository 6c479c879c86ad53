"""The dashboard as the controller itself serves it, on its simulated cluster. DASHBOARD_IMAGES names where the pictures of the
documentation go, else they go to build/dashboard."""
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from PIL import Image

import alike
from conftest import OUT, ROWS, axe, column, names, tour, until
from fake import PAGE, Fake, policy_of
from test_look import shoot

FUNCTIONS = ["checkout", "report", "search", "thumbnail", "web"]
WATCHED = "search"  # in mode Off, and its MPA comes after four hours


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError):
        return None


def names_of(url):
    return [f"{r['namespace']}/{r['name']}" for r in answers(url + "api/v1/mpas")["items"]]


def until_some(find, seconds=60):
    end = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < end
        time.sleep(0.5)
    return found


@contextlib.contextmanager
def simulation(speed):
    """Two simulated days of `speed` seconds in one; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = os.environ.get("CONTROLLER", "build/faasrl-mpa")
    process = subprocess.Popen([program, "--simulate", "--simulate-duration=48h", f"--simulate-speed={speed}", f"--listen=127.0.0.1:{port}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    url, end = f"http://127.0.0.1:{port}/", time.monotonic() + 60
    while not (answers(url + "api/v1/mpas") or {}).get("items") and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.1)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="module")
def controller():
    """With all of its MPAs."""
    with simulation(600) as url:
        until_some(lambda: len(names_of(url)) == len(FUNCTIONS), 120)
        yield url


def test_an_mpa_comes_while_the_page_is_open(visit):
    with simulation(200) as url:
        page = visit.open(url, wait=ROWS)
        assert [n.split("/")[1] for n in names(page)] == [f for f in FUNCTIONS if f != WATCHED]
        assert page.locator(".count").inner_text() == "4 autoscalers"
        page.locator(ROWS, has_text=WATCHED).wait_for(timeout=180000)
        assert [n.split("/")[1] for n in names(page)] == FUNCTIONS
        assert page.locator(".count").inner_text() == "5 autoscalers"
        page.close()  # before its controller goes


def test_the_page_comes_with_its_policy(controller):
    with urllib.request.urlopen(controller) as answer:
        html = answer.read().decode()
        assert html == PAGE.read_text()
        assert answer.headers["Content-Security-Policy"] == policy_of(html)
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_list_is_live(controller, visit):
    page = visit.open(controller, wait=ROWS)
    assert [n.split("/")[1] for n in names(page)] == FUNCTIONS
    assert page.locator("#simulated").is_visible()
    page.locator("#link.live").wait_for()
    before = column(page, "load")
    until(page, f"[...document.querySelectorAll('.grid-space .grid-row:not([hidden]) .load')].map(c => c.innerText).join() !== {json.dumps(','.join(before))}")
    assert all(re.fullmatch(r"p99 [\d.]+ m?s", goal) for goal in column(page, "goal"))
    shoot(page, "simulated-list")
    assert axe(page) == []


def test_one_mpa_over_time(controller, visit):
    page = visit.open(controller, wait=ROWS)
    page.locator(ROWS, has_text="thumbnail").click()
    page.wait_for_selector(".u-over")
    page.locator(".marks li").first.wait_for()
    assert re.search(r"→|replicas|cpu", page.locator(".marks li").first.inner_text())
    assert "Ready" in page.locator(".conditions").inner_text()
    before = page.locator(".moment").inner_text()
    until(page, f"document.querySelector('.moment').innerText !== {json.dumps(before)}")
    values = page.evaluate("[...document.querySelectorAll('.keys b')].map(b => b.innerText)")
    assert values.count("–") <= 2, values
    shoot(page, "simulated-mpa")
    assert axe(page) == []


def test_what_mode_auto_would_have_done(controller, visit):
    what = until_some(lambda: answers(f"{controller}api/v1/mpas/default/{WATCHED}")["whatIf"])
    assert what["coreHours"] >= 0 and what["since"] > 0
    page = visit.open(controller, f"#/mpa/default/{WATCHED}", wait=".u-over")
    box = page.locator("section", has=page.locator("#what-if"))
    box.get_by_text("Auto would have reserved").wait_for()
    text = box.inner_text()
    assert re.search(r"Auto would set \d+ × \d+m; there are 4 × 1000m\.|Auto would leave the target as it is now\.", text)
    assert re.search(r"Since [\d: -]+, [\d,]+ requests\. Auto would have reserved \d+ % (less|more) CPU and ", text)
    assert "Core-hours" in text and "Late requests" in text
    page.locator(".marks li").first.wait_for()
    assert "not done" in page.locator(".marks li").first.inner_text()
    before = text
    until(page, f"document.querySelector('section:has(#what-if)').innerText !== {json.dumps(before)}")
    assert page.locator(".tile", has_text="Replicas").locator(".value").inner_text().startswith("4"), "nothing is done"
    shoot(page, "simulated-off")
    assert axe(page) == []
    page.goto(controller + "#/mpa/default/web")
    page.wait_for_selector(".u-over")
    assert page.locator("#what-if").count() == 0


def test_what_it_serves_is_what_it_says(controller, visit):
    """The page and the interface agree on every figure of a row that does not move."""
    page = visit.open(controller, wait=ROWS)
    rows = answers(controller + "api/v1/mpas")["items"]
    assert [f"{r['namespace']}/{r['name']}" for r in sorted(rows, key=lambda r: r["name"])] == names(page)
    assert column(page, "mode") == [r["mode"] for r in sorted(rows, key=lambda r: r["name"])]
    assert column(page, "recommender") == [r["recommender"] for r in sorted(rows, key=lambda r: r["name"])]
    timeline = answers(controller + f"api/v1/mpas/{names(page)[0]}/timeline")
    assert len({len(c) for c in timeline["points"].values()}) == 1 and len(timeline["points"]["time"]) > 5


def test_the_fake_tells_the_same(controller):
    def told():
        return alike.answers(lambda path: answers(f"{controller}api/v1/{path}"), names_of(controller))
    until_some(lambda: "decision" in alike.values(told()["timeline"], "kind") and answers(f"{controller}api/v1/mpas/default/{WATCHED}")["whatIf"])
    alike.check(Fake(12), told())


def test_every_view_wide_and_narrow_light_and_dark(controller, visit):
    tour(visit.open(controller, wait=ROWS), "default/web")


def test_filters(controller, visit):
    page = visit.open(controller, wait=ROWS)
    page.locator("#mode").select_option("Off")
    assert names(page) == [f"default/{WATCHED}"]
    page.locator("#mode").select_option("Initial")
    page.get_by_text("No autoscaler is like that.").wait_for()
    page.get_by_role("button", name="Show all").click()
    page.locator("#namespace").select_option("default")
    assert [n.split("/")[1] for n in names(page)] == FUNCTIONS
    page.keyboard.press("/")
    page.keyboard.type("deployment/rep")
    assert names(page) == ["default/report"]
    page.keyboard.press("Escape")
    page.locator(".grid-head .goal button").click()
    assert column(page, "goal") == ["p99 150 ms", "p99 150 ms", "p99 300 ms", "p99 500 ms", "p99 1 s"]


def test_it_says_that_nobody_learns(controller, visit):
    """All ask for threshold; test_controller.py has one that learns."""
    page = visit.open(controller, "#/learning", wait=".view")
    page.get_by_text("No autoscaler learns: none asks for the recommender ppo.").wait_for()
    assert page.locator(ROWS).count() == 0 and axe(page) == []
    page.goto(controller + "#/mpa/default/web")
    page.wait_for_selector(".u-over")
    assert not page.locator("#versions").is_visible() and page.locator("#learning").count() == 0


def keep(page, name):
    out = Path(os.environ.get("DASHBOARD_IMAGES", OUT))
    out.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(out / f"dashboard-{name}.png", optimize=True)
    assert (out / f"dashboard-{name}.png").stat().st_size < 300_000


def test_it_makes_a_picture_of_the_list(controller, visit):
    page = visit.open(controller, width=1200, height=480, wait=ROWS, still=True)
    page.locator("#link.live").wait_for()
    page.wait_for_timeout(300)
    keep(page, "list")


def test_it_makes_a_picture_of_one_mpa(controller, visit):
    """With the reason of the decision that is pointed at: the latest one that added replicas, and has room for its text."""
    page = visit.open(controller, width=1200, height=1130, wait=ROWS, still=True)
    page.locator(ROWS, has_text="thumbnail").click()
    page.wait_for_selector(".u-over")
    key = next(k for k in names_of(controller) if k.endswith("/thumbnail"))
    ups = until_some(lambda: [m for m in answers(controller + f"api/v1/mpas/{key}/timeline")["marks"] if m["kind"] == "decision" and (m["toReplicas"] or 0) > (m["fromReplicas"] or 0)])
    when = page.locator(".marks li", has_text=ups[len(ups) // 2]["text"]).last.locator(".when")
    when.evaluate("e => e.click()")
    page.locator(".tip").wait_for()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(2, 2)
    keep(page, "mpa")
