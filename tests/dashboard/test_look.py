"""It can be read in light, dark and on a phone, by everyone, and obeys the policy it is served with. Pictures are left in
build/dashboard."""
import re

import pytest

from conftest import OUT, ROWS, axe, column
from fake import PAGE

VIEWS = {"list": ("#/", ROWS), "mpa": ("#/mpa/shop/mail", ".u-over"), "trouble": ("#/mpa/billing/login", ".u-over"), "learning": ("#/learning", ROWS), "report": ("#/report", ".drop")}


def shoot(page, name):
    OUT.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(150)
    page.screenshot(path=OUT / f"{name}.png")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_in_the_way_of_anyone(fake, visit, view, dark):
    where, wait = VIEWS[view]
    page = visit.open(fake.server.url, where, dark=dark, wait=wait, still=True)
    shoot(page, f"{view}-{'dark' if dark else 'light'}")
    assert axe(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_signing_in_neither(serve, visit, dark):
    visit.allow("401")
    page = visit.open(serve(token="secret").server.url, wait="#token", dark=dark, still=True)
    shoot(page, f"sign-in-{'dark' if dark else 'light'}")
    assert axe(page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_on_a_phone(fake, visit, view):
    where, wait = VIEWS[view]
    page = visit.open(fake.server.url, where, width=360, height=740, wait=wait, still=True)
    shoot(page, f"{view}-phone")
    assert page.evaluate("document.documentElement.scrollWidth") == 360, "no need to scroll sideways"
    assert axe(page) == []


@pytest.mark.parametrize("view", ["list", "learning"])
@pytest.mark.parametrize("width", [360, 1200, 1600])
def test_what_stands_in_a_row_does_not_touch(fake, visit, view, width):
    where, wait = VIEWS[view]
    page = visit.open(fake.server.url, where, width=width, wait=wait, still=True)
    gaps = page.evaluate("""() => [...document.querySelectorAll('.grid-space .grid-row:not([hidden])')].flatMap(row => {
        const boxes = [...row.children].filter(c => c.offsetParent && c.innerText.trim()).map(cell => {
            const range = document.createRange(); range.selectNodeContents(cell);
            const seen = range.getBoundingClientRect(), own = cell.getBoundingClientRect(), hides = cell.matches('.name, .falls, .recommender, .mode, .policy');
            return [seen.left, hides ? Math.min(seen.right, own.right) : seen.right, own.top, own.bottom]; });
        return boxes.flatMap(a => boxes.filter(b => b !== a && b[0] >= a[0] && b[2] < a[3] && a[2] < b[3]).map(b => b[0] - a[1])); })""")
    assert len(gaps) > 10 and min(gaps) >= 6


def test_a_phone_sorts_too(fake, visit):
    page = visit.open(fake.server.url, width=360, height=740, wait=ROWS)
    page.get_by_label("Sort by").select_option("replicas")
    counts = [int(re.match(r"\d+", text)[0]) for text in column(page, "replicas")]
    assert counts == sorted(counts, reverse=True) and len(counts) > 3
    page.locator(ROWS).first.click()
    page.wait_for_selector(".detail .u-over")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light_can_be_switched(fake, visit):
    visit.allow("willReadFrequently")  # of this test's own looking
    page = visit.open(fake.server.url, "#/mpa/shop/mail", wait=".u-over")
    light = background(page)
    pixel = "(() => { const c = document.querySelector('.plot canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let s = 0; for (const v of d) s = (s * 31 + v) % 1000003; return s; })()"
    before = page.evaluate(pixel)
    page.locator("#theme").click()
    page.wait_for_timeout(100)
    dark = background(page)
    assert dark != light and page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.evaluate(pixel) != before, "plots too"
    page.reload()
    page.wait_for_selector(".u-over")
    assert background(page) == dark, "it is kept"
    assert background(visit.open(fake.server.url, dark=True)) == dark, "as the system says"


def test_the_policy_is_obeyed(fake, visit):
    """No script but that of the page runs in it, and none of its styles is refused (which would be complained of)."""
    visit.allow("Content Security Policy")
    page = visit.open(fake.server.url, wait=ROWS)
    ran = page.evaluate("""async () => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);
        const d = document.createElement('div'); d.setAttribute('style', 'color: rgb(1, 2, 3)'); document.body.append(d);
        return [window.ran ?? null, getComputedStyle(d).color === 'rgb(1, 2, 3)']; }""")
    assert ran == [None, False]


def test_the_page_is_one_small_file():
    html = PAGE.read_text()
    assert html.count("<script>") == html.count("<script") == html.count("<style>") == html.count("<style") == 1
    body = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\son\w+=|\sstyle=|src=|@import", body)
    assert all(href.startswith(("#", "data:")) for href in re.findall(r'href="([^"]*)"', body))
    assert "Permission is hereby granted" in html, "uPlot's licence"
    assert "innerHTML" not in html and "insertAdjacentHTML" not in html and "eval(" not in html
    assert len(html) < 200_000


def test_it_moves_no_more_than_one_likes(fake, visit):
    page = visit.open(fake.server.url, still=True, wait=ROWS)
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('#link i')).animationName") == "none"


def test_keyboard_reaches_everything(fake, visit):
    page = visit.open(fake.server.url, wait=ROWS)
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        at = page.evaluate("(e => [e.tagName, e.id || e.className || e.innerText, getComputedStyle(e).outlineStyle])(document.activeElement)")
        if at[0] == "BODY":
            break
        seen.append(at)
    what = " ".join(str(s[1]) for s in seen)
    for part in ("skip", "brand", "theme", "chip", "search", "namespace", "mode", "grid"):
        assert part in what, what
    assert all(s[2] != "none" for s in seen), "where one is can be seen"
