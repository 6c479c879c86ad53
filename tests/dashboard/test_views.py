"""One MPA, learning, signing in."""
import re

import pytest

from conftest import ROWS, column, names, until

PLOTS = ["Load", "Latency", "Replicas", "CPU", "Utilisation", "Reward"]


def titles(page):
    return page.evaluate("[...document.querySelectorAll('.chart h3')].map(h => h.firstChild.data)")


def values(page):
    return page.evaluate("[...document.querySelectorAll('.keys b')].map(b => b.innerText)")


@pytest.fixture
def detail(fake, visit):
    return visit.open(fake.server.url, "#/mpa/shop/cart", wait=".u-over")


def test_one_mpa(fake, detail):
    row = fake.rows["shop/cart"]
    assert detail.locator("h1").inner_text() == "shop / cart"
    tiles = detail.locator(".tiles").inner_text()
    for text in (f"{row['latencyMs']:.0f} ms", f"goal p99 {row['goalMs']} ms", f"{row['requestsPerSecond']:.0f}", "1 to 10 allowed", f"{100 * row['utilization']:.0f} %"):
        assert text in tiles
    assert titles(detail)[:5] == PLOTS[:5]
    assert "main" in detail.locator("#containers + div").inner_text() and "AbleToScale" in detail.locator(".conditions").inner_text()
    assert "replicas 3 → 4" in detail.locator(".last-decision").inner_text()
    assert detail.title() == "cart – faasrl-mpa"


def test_plots_are_drawn(detail):
    """Each has pixels in more than the colours of the frame."""
    counts = detail.evaluate("""() => [...document.querySelectorAll('.plot canvas')].map(c => {
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
        for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 250) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
        return seen.size; })""")
    assert len(counts) >= 5 and min(counts) > 5


def test_decisions_and_their_reasons(fake, detail):
    marks = [m for m in fake.past("shop/cart")[1]]
    shown = detail.locator(".marks li")
    assert shown.count() == min(50, len(marks)) > 5
    assert marks[-1]["text"] in shown.first.inner_text()
    assert re.search(r"\d → \d+ replicas|\d+m → \d+m CPU", shown.first.inner_text())
    over = detail.locator(".u-over").nth(2)
    box = over.bounding_box()
    first, last = fake.past("shop/cart")[0]["time"][0], fake.past("shop/cart")[0]["time"][-1]
    mark = marks[len(marks) // 2]
    over.hover(position={"x": box["width"] * (mark["time"] - first) / (last - first), "y": 40})
    tip = detail.locator(".tip")
    tip.wait_for()
    assert mark["text"] in tip.inner_text()
    detail.locator("h1").hover()
    tip.wait_for(state="hidden")
    detail.locator(".marks .when").first.click()
    tip.wait_for()
    assert marks[-1]["text"] in tip.inner_text(), "the list shows where it was"


def test_kinds_of_events(fake, detail):
    kinds = {"decision": "Decision", "policy": "Policy", "fallback": "Fallback", "trouble": "Trouble"}
    for kind in kinds:
        fake.decide("shop/cart", {"kind": kind, "title": f"one of {kind}", "text": "why", "recommender": "threshold", "applied": True,
                                  "fromReplicas": None, "toReplicas": None, "fromCpuMilli": None, "toCpuMilli": None})
    detail.locator(".marks li", has_text="one of trouble").wait_for()
    chosen, marks = detail.get_by_label("Kind of event"), fake.past("shop/cart")[1]
    assert chosen.locator("option").all_inner_texts() == ["All events", *kinds.values()]
    for kind in kinds:
        chosen.select_option(kind)
        shown = [m["text"] for m in reversed(marks) if m["kind"] == kind][:50]
        assert [p.inner_text() for p in detail.locator(".marks li p").all()] == shown
        assert detail.locator(f".marks li:not(.{kind})").count() == 0
    chosen.select_option("")
    assert detail.locator(".marks li").count() == min(50, len(marks))


def test_older_events_are_shown_when_asked_for(fake, visit):
    marks = [m for m in fake.past("shop/cart")[1]]
    for i in range(130 - len(marks)):
        marks.insert(0, {**marks[0], "time": marks[0]["time"] - 1000, "text": f"older {i}"})
    fake.past("shop/cart")[1][:] = marks
    page = visit.open(fake.server.url, "#/mpa/shop/cart", wait=".u-over")
    shown, more = page.locator(".marks li"), page.get_by_role("button", name="Show older ones")
    for count in (50, 100):
        assert shown.count() == count and more.inner_text() == f"Show older ones ({130 - count})"
        more.click()
    assert shown.count() == 130 and more.is_hidden()
    assert marks[0]["text"] in shown.last.inner_text()
    page.get_by_label("Kind of event").select_option("trouble")
    page.get_by_text("There is no such event.").wait_for()
    assert shown.count() == 0


def test_one_line_is_read_off_in_all_plots(fake, detail):
    points = fake.past("shop/cart")[0]
    before = values(detail)
    over = detail.locator(".u-over").nth(0)
    box = over.bounding_box()
    over.hover(position={"x": box["width"] / 2, "y": 50})
    after = values(detail)
    middle = len(points["time"]) // 2
    near = {f"{points['utilization'][i] * 100:.0f} %" for i in range(middle - 3, middle + 4)}
    assert detail.locator(".moment").inner_text() == "13:36:40", "half of three hours before 15:06:40"
    assert after != before and set(after) & near, "of the last plot, pointed at in the first"
    detail.locator("h1").hover()
    detail.locator(".charts").focus()
    detail.keyboard.press("End")
    assert values(detail) == before
    detail.keyboard.press("Home")
    assert f"{points['utilization'][0] * 100:.0f} %" in values(detail)


def test_time_shown(fake, detail):
    def axis():
        return detail.evaluate("document.querySelectorAll('.plot canvas').length && [...document.querySelectorAll('.spans [aria-pressed=true]')].map(b => b.innerText).join()")
    assert axis() == "All"
    detail.get_by_role("button", name="15 min").click()
    assert axis() == "15 min"
    detail.locator(".charts").focus()
    detail.keyboard.press("Home")
    points = fake.past("shop/cart")[0]
    assert f"{points['utilization'][-61] * 100:.0f} %" in values(detail), "a quarter of an hour ago"
    box = detail.locator(".u-over").nth(1).bounding_box()
    detail.mouse.move(box["x"] + 100, box["y"] + 30)
    detail.mouse.down()
    detail.mouse.move(box["x"] + 300, box["y"] + 30, steps=4)
    detail.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # plots follow the mouse once a frame
    detail.mouse.up()
    assert axis() == "", "what was dragged over"
    detail.locator(".u-over").nth(1).dblclick()
    assert axis() == "15 min"


def test_a_decision_shows_as_it_is_made(fake, detail):
    count = detail.locator(".marks li").count()
    fake.rows["shop/cart"]["replicas"] = 9
    fake.decide("shop/cart", {"kind": "decision", "title": "scale up", "text": "p99 612ms over goal 500ms at 93% CPU: replicas 7 → 9", "recommender": "threshold",
                              "fromReplicas": 7, "toReplicas": 9, "fromCpuMilli": 100, "toCpuMilli": 100, "applied": True})
    detail.locator(".marks li", has_text="p99 612ms over goal").wait_for()
    assert detail.locator(".marks li").count() in (count + 1, 50)
    detail.locator(".tile", has_text="Replicas").get_by_text("9", exact=False).first.wait_for()
    until(detail, "[...document.querySelectorAll('.chart')][2].querySelectorAll('.keys b')[1].innerText === '9'")
    assert sum("timeline?since=" in a for a in fake.asked) >= 1, "only what is new is asked for"


def test_what_off_would_have_done(fake, visit):
    page = visit.open(fake.server.url, "#/mpa/shop/mail", wait=".u-over")
    row = fake.rows["shop/mail"]
    text = page.locator("section", has=page.locator("#what-if")).inner_text()
    assert f"Auto would set {row['wantedReplicas']} × {row['wantedCpuMilli']}m; there are {row['replicas']} × {row['cpuMilli']}m." in text
    assert "34 % less CPU" in text and "15,292 late requests" in text and "48.2" in text and "31.9" in text
    assert "not done" in page.locator(".marks li").first.inner_text()
    assert visit.open(fake.server.url, "#/mpa/shop/cart", wait=".u-over").locator("#what-if").count() == 0


def test_an_mpa_that_goes(fake, visit):
    visit.allow("404")
    page = visit.open(fake.server.url, "#/mpa/shop/cart", wait=".u-over")
    fake.gone("shop/cart")
    page.get_by_text("There is no such autoscaler (any more).").wait_for()
    visit.open(fake.server.url, "#/mpa/shop/nobody").get_by_text("There is no such autoscaler (any more).").wait_for()


def test_learning(fake, visit):
    page = visit.open(fake.server.url, "#/learning", wait=ROWS)
    asks = sorted(k for k, r in fake.rows.items() if r["recommender"] == "ppo")
    assert names(page) == asks
    assert all(d.count("L") > 20 for d in page.evaluate("[...document.querySelectorAll('.spark path')].map(p => p.getAttribute('d'))"))
    assert page.locator("progress:visible").count() > 2 and "40 %" in column(page, "state")[2]
    assert any("threshold decides in place of ppo" in c for c in column(page, "falls"))
    page.locator(".grid-head .falls button").click()
    assert "Fallback" in column(page, "falls")[0]
    page.get_by_label("State", exact=True).select_option("fallback")
    assert 0 < len(names(page)) < len(asks)
    page.locator(ROWS).first.click()
    page.wait_for_selector(".detail .u-over")


def test_versions_of_policies(fake, visit):
    """In the list the one that decides, in the view of an MPA all of them, with what became of each."""
    page = visit.open(fake.server.url, "#/learning", wait=ROWS)
    learns = {k: fake.learning_of(r) for k, r in fake.rows.items() if r["recommender"] == "ppo"}
    own, waits, new = ([k for k, l in sorted(learns.items()) if l["state"] == state][0] for state in ("own", "retraining", "bootstrapping"))
    shown = dict(zip(names(page), column(page, "policy")))
    assert shown[own].split("\n") == ["a policy of its own 1 rolled back", f"{learns[own]['sha256'][:12]} v4 retrained"]
    assert shown[waits].split() == ["–", "v2", "waits"] and shown[new].strip() == "–"
    page.locator("#search").fill("rolled back")
    assert own in names(page) and waits not in names(page)
    page.locator(ROWS).nth(names(page).index(own)).click()
    lines = page.locator(".versions tbody tr")
    lines.first.wait_for()
    cells = [[c.split("\n") for c in line.locator("td").all_inner_texts()] for line in lines.all()]
    assert [line[0] for line in cells] == [[name, fake.versions(own.split("/")[1], "own")[i]["sha256"][:12]]
                                           for i, name in enumerate(["4 retrained", "3 retrained", "2 bootstrapped", "1 shipped"])]
    assert cells[0][1:3] == [["Decides"], ["−1.09", "in 480 intervals"]] and len(cells[0][3]) == 1
    assert cells[1][1] == ["Rolled back", "it earned -1.633 an interval, and the one before -1.187"]
    assert cells[3][1] == ["Replaced"] and re.fullmatch(r"until [\d:]+", cells[3][3][1])
    assert "Version 4: retrained" in page.locator("section", has=page.locator("#learning")).inner_text()
    first = lines.first.element_handle()
    fake.extra[own] = {"learning": {**fake.detail(own)["learning"], "versions": fake.versions("other", "general")}}
    fake.rows[own]["replicas"] += 1
    fake.news(own)
    until(page, "document.querySelectorAll('.versions tbody tr').length === 1")
    assert first.inner_text().startswith("1 shipped"), "what is there is filled anew"
    page.goto(fake.server.url + f"#/mpa/{waits}")
    page.get_by_text(re.compile("^Thresholds decide since")).wait_for()
    assert "which waits: bootstrapped" in page.locator("section", has=page.locator("#learning")).inner_text()
    page.goto(fake.server.url + f"#/mpa/{new}")
    page.locator("h1", has_text=new.split("/")[1]).wait_for()
    page.wait_for_selector(".u-over")
    assert not page.locator(".versions").is_visible()


def test_unknown_addresses(fake, visit):
    page = visit.open(fake.server.url, "#/nothing/like/this")
    assert "There is nothing here" in page.locator("main").inner_text()


class TestSignIn:
    def test_without_a_token(self, serve, visit):
        visit.allow("401")
        fake = serve(token="secret")
        page = visit.open(fake.server.url, wait="#token")
        assert "kubectl create token" in page.locator("form").inner_text() and page.evaluate("document.activeElement.id") == "token"
        page.locator("#token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("a valid token is needed").wait_for()
        page.locator("#token").fill("secret")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector(ROWS)
        assert names(page) == sorted(fake.rows)
        assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""], "nowhere but in this tab"
        assert not any("secret" in path for path in fake.asked)
        page.reload()
        page.wait_for_selector(ROWS)
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_selector("#token")
        assert page.evaluate("sessionStorage.length") == 0 and page.locator(ROWS).count() == 0

    def test_with_rights_in_one_namespace(self, serve, visit):
        visit.allow("401|403")
        fake = serve(token="secret", spaces=["shop"])
        page = visit.open(fake.server.url, "#/mpa/shop/cart", wait="#token")
        page.locator("#token").fill("secret")
        page.keyboard.press("Enter")
        page.get_by_text("name one by ?namespace=").wait_for()
        assert page.evaluate("document.activeElement.id") == "token-namespace"
        page.keyboard.type("shop")
        page.keyboard.press("Enter")
        page.wait_for_selector(".u-over")
        page.get_by_role("link", name="← All autoscalers").click()
        page.wait_for_selector(ROWS)
        assert set(names(page)) == {k for k in fake.rows if k.startswith("shop/")}

    def test_an_mpa_of_another_namespace(self, serve, visit):
        visit.allow("401|403|404")
        fake = serve(token="secret", spaces=["shop"])
        page = visit.open(fake.server.url, "#/mpa/media/checkout", wait="#token")
        page.locator("#token").fill("secret")
        page.locator("#token-namespace").fill("shop")
        page.keyboard.press("Enter")
        page.get_by_text("There is no such autoscaler (any more).").wait_for()

    def test_a_token_that_runs_out(self, serve, visit):
        visit.allow("401")
        fake = serve(count=12)
        page = visit.open(fake.server.url, wait=ROWS)
        fake.token = "another"
        fake.break_streams()
        page.wait_for_selector("#token")
