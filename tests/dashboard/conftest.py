"""A real browser, with fakes of the controller to look at. What goes wrong in a page fails its test."""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from fake import Fake, Server  # noqa: E402

OUT = Path("build/dashboard")
AXE = Path(os.environ.get("AXE", "axe.min.js"))
FLAGS = ["--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"]


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS, *root])
        yield browser
        browser.close()


class Visitor:
    """Opens pages, and keeps what they complained of and whom they asked."""

    def __init__(self, chromium):
        self.chromium, self.contexts, self.troubles, self.hosts, self.allowed = chromium, [], [], {}, []

    def open(self, url, hash="", width=1360, height=900, dark=False, wait=".view", still=False):
        context = self.chromium.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light",
                                            has_touch=width < 600, reduced_motion="reduce" if still else "no-preference",
                                            timezone_id="UTC", locale="en-GB")
        self.contexts.append(context)
        context.set_default_timeout(15000)
        page = context.new_page()
        page.on("console", lambda m: self.troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.troubles.append(str(e)))
        page.on("request", lambda r: self.hosts.setdefault(r.url.split("/")[2] if "//" in r.url else "", r.url))
        page.goto(url + hash)
        page.wait_for_selector(wait)
        self.host = url.split("/")[2]
        return page

    def allow(self, pattern):
        """The browser itself complains of every answer that is an error."""
        self.allowed.append(pattern)

    def end(self):
        for context in self.contexts:
            context.close()
        left = [t for t in self.troubles if not any(re.search(a, t) for a in self.allowed)]
        assert left == []
        others = {h: u for h, u in self.hosts.items() if h != self.host and not u.startswith(("data:", "blob:"))}
        assert others == {}, "nobody else is asked for anything"


@pytest.fixture
def visit(chromium):
    visitor = Visitor(chromium)
    yield visitor
    visitor.end()


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """One that has hardly learned anything, so that a better one is looked for."""
    file = tmp_path_factory.mktemp("policy") / "policy"
    subprocess.run([os.environ.get("MPACTL", "build/mpactl"), "policy", "--updates", "1", "--seed", "1", "--out", file], check=True,
                   stdout=subprocess.PIPE)
    return file


@pytest.fixture
def serve():
    """serve(count=…, token=…): a Fake that is served; .server has its address."""
    servers = []

    def start(**options):
        fake = Fake(**options)
        fake.server = Server(fake)
        servers.append(fake.server)
        return fake
    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def fake(serve):
    return serve(count=12)


ROWS = ".grid-space .grid-row:not([hidden])"


def names(page):
    """Of the rows in the page, from top to bottom."""
    return page.evaluate("""() => [...document.querySelectorAll('.grid-space .grid-row:not([hidden])')]
        .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(r => r.querySelector('.name a').textContent.replace(' / ', '/'))""")


def column(page, name):
    return page.evaluate("""name => [...document.querySelectorAll('.grid-space .grid-row:not([hidden])')]
        .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(r => r.querySelector('.' + name).innerText)""", name)


def until(page, script):
    """The page's policy forbids to have scripts polled in it."""
    end = time.monotonic() + 15
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        page.wait_for_timeout(20)


class Work:
    """What a page does in its main thread: milliseconds of the processor, not of the clock, so that it does not matter what else
    the machine has to do. Of frames that is script, style and layout; with `every` all there is, painting and what reads a stream
    too."""

    def __init__(self, page, every=False):
        self.page, self.session = page, page.context.new_cdp_session(page)
        self.parts = ("Task",) if every else ("Script", "RecalcStyle", "Layout")
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def done(self):
        values = {m["name"]: m["value"] for m in self.session.send("Performance.getMetrics")["metrics"]}
        return 1000 * sum(values[part + "Duration"] for part in self.parts)

    def of(self, script):
        """What comes of the script until the next frame is drawn, the script itself not counted."""
        before = self.done()
        self.page.evaluate("(" + script + ")(), new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return self.done() - before


def becomes(page, probe):
    """True, a little later at most: rows come and go while one looks."""
    end = time.monotonic() + 30
    while not probe():
        assert time.monotonic() < end, "not within 30 s"
        page.wait_for_timeout(20)


def choices(select):
    """What it can be set to, but for all."""
    found = select.locator("option").evaluate_all("all => all.filter(o => o.value).map(o => [o.value, o.text])")
    assert found
    return found


def filter_list(page):
    """Each filter and each order of the list, one after the other."""
    kinds = {"#namespace": lambda: {name.split("/")[0] for name in names(page)},
             "#mode": lambda: {mode.split("\n")[0] for mode in column(page, "mode")}}
    for id, shown in kinds.items():
        for value, _ in choices(page.locator(id)):
            page.locator(id).select_option(value)
            becomes(page, lambda: shown() <= {value})
        page.locator(id).select_option("")
    chips, heads = page.locator("button.chip").all(), page.locator(".grid-head [aria-sort]").all()
    assert len(chips) == 6 and len(heads) == 10
    for chip in chips[1:]:
        chip.click()
        title = chip.locator("span").inner_text().split("\n")[-1].strip()
        becomes(page, lambda: chip.get_attribute("aria-pressed") == "true" and all(title in h for h in column(page, "health")))
    chips[0].click()
    for head in heads:
        head.locator("button").click()
        becomes(page, lambda: head.get_attribute("aria-sort") != "none")


def filter_events(page):
    """Each kind of event, and each span of time."""
    kind = page.get_by_label("Kind of event")
    for value, _ in choices(kind):
        kind.select_option(value)
        becomes(page, lambda: page.locator(f".marks li:not(.{value})").count() == 0)
    kind.select_option("")
    spans = page.locator(".spans button").all()
    assert len(spans) == 4
    for span in spans:
        span.click()
        becomes(page, lambda: span.get_attribute("aria-pressed") == "true")


def filter_learning(page):
    state = page.get_by_label("State", exact=True)
    for value, title in choices(state):
        state.select_option(value)
        becomes(page, lambda: all(title in s or value == "fallback" for s in column(page, "state")))
    state.select_option("")


def tour(page, mpa):
    """Through all views of an open page, wide and on a phone, light and dark: whatever is shown can be used by everyone. The
    MPA is looked for by words first, and each filter is tried."""
    for width, theme in ((1360, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900 if width > 600 else 740})
        page.emulate_media(color_scheme=theme)
        page.locator("a[data-view=list]").click()
        if width > 600:
            filter_list(page)
        page.locator("#search").fill("no such thing at all")
        page.get_by_text("No autoscaler is like that.").wait_for()
        page.locator("#search").fill(mpa.replace("/", " "))
        page.wait_for_selector(ROWS)
        assert mpa in names(page)
        check_view(page, width)
        page.locator(ROWS).nth(names(page).index(mpa)).click()
        page.wait_for_selector(".u-over")
        filter_events(page)
        check_view(page, width)
        for view, sign in (("learning", "h1 >> text=Learning"), ("report", ".drop")):
            page.locator(f"a[data-view={view}]").click()
            page.wait_for_selector(sign)
            if view == "learning":
                filter_learning(page)
            check_view(page, width)
    page.set_viewport_size({"width": 1360, "height": 900})
    page.emulate_media(color_scheme="light")
    page.locator("a[data-view=list]").click()
    page.wait_for_selector(ROWS)


def check_view(page, width):
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "no need to scroll sideways"
    assert axe(page) == []


def axe(page):
    """What the accessibility checker finds."""
    page.evaluate(AXE.read_text() + ";0")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(v["id"], [n["html"][:200] + " " + n.get("failureSummary", "") for n in v["nodes"]][:4]) for v in found["violations"]]
