"""The dashboard of a controller that learns: who may see it, a policy that is looked for, what it came to. The API server and
the Prometheus that it asks are those of tests/alerts/world.py, here with reviews of tokens."""
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import alike
from conftest import ROWS, axe, becomes, column, names, tour
from fake import Fake
from test_look import shoot

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "alerts"))
import world  # noqa: E402  (its place is only known now)

# Token → who it is, and where that one may list MPAs; "" is everywhere.
USERS = {"reader": ("jane", {""}), "shopper": ("joe", {"shop"}), "stranger": ("eve", set())}
SLOWLY, AT_ONCE = "--learn-effort=100", "--learn-effort=1"


class ApiServer(world.ApiServer):
    def do_POST(self):
        review = json.loads(self.body())
        if "/tokenreviews" in self.path:
            user = USERS.get(review["spec"]["token"])
            review["status"] = {"authenticated": user is not None, "user": {"username": user[0]} if user else {}}
        elif "/subjectaccessreviews" in self.path:
            spec = review["spec"]
            where, = [spaces for name, spaces in USERS.values() if name == spec["user"]]
            review["status"] = {"allowed": bool({"", spec["resourceAttributes"].get("namespace", "")} & where)}
        self.answer(201, review)


@pytest.fixture
def run(policy, tmp_path):
    running = []

    def start(*flags):
        controller = world.Controller(tmp_path, f"--policy={policy}", "--learn-after=1s", *flags, api=ApiServer)
        running.append(controller.__enter__())
        controller.scrape_until('mpas_by_condition{condition="Ready",status="True"} 1')
        controller.url = f"http://127.0.0.1:{controller.port}/"
        return controller
    yield start
    for controller in running:
        controller.__exit__()


def ask(controller, path, token=None):
    """Status and text."""
    request = urllib.request.Request(controller.url + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


def sign_in(visit, controller, hash=""):
    visit.allow("401")
    page = visit.open(controller.url, hash, wait="#token")
    page.locator("#token").fill("reader")
    page.keyboard.press("Enter")
    page.locator("#link.live").wait_for()
    return page


def test_nothing_is_told_to_those_who_may_not(run):
    """Not even whether there is an MPA: what is said does not depend on it."""
    controller = run("--learn=false")
    paths = ["about", "mpas", "learning", "stream", "mpas/shop/web", "mpas/shop/nobody", "mpas/shop/web/timeline"]
    for token, status in ((None, 401), ("nonsense", 401), ("stranger", 403)):
        for path in paths:
            got, text = ask(controller, f"api/v1/{path}", token)
            assert got == status and set(json.loads(text)) == {"error"}, (path, token, text)
            assert "web" not in text and "nonsense" not in text
        assert ask(controller, "api/v1/mpas/shop/web", token) == ask(controller, "api/v1/mpas/shop/nobody", token)
        assert ask(controller, "api/v1/mpas?namespace=shop", token)[0] == status
    assert ask(controller, "api/v1/mpas", "shopper")[0] == 403
    status, text = ask(controller, "api/v1/mpas?namespace=shop", "shopper")
    assert status == 200 and [row["name"] for row in json.loads(text)["items"]] == ["web"]
    assert ask(controller, "api/v1/mpas/shop/nobody", "shopper")[0] == 404
    assert json.loads(ask(controller, "api/v1/about", "reader")[1])["user"] == "jane"
    told = controller.told()
    assert not [token for token in (*USERS, "nonsense") if token in told]


def test_a_policy_is_looked_for(run, visit):
    page = sign_in(visit, run(SLOWLY), "#/learning")
    page.locator(ROWS).get_by_text("Bootstrapping", exact=True).wait_for(timeout=60000)
    assert names(page) == ["shop/web"]
    page.locator(ROWS).locator(".falls .badge").wait_for()
    assert "threshold decides in place of ppo" in column(page, "falls")[0]
    assert page.locator(".count").inner_text() == "1 of 1, 1 in fallback"
    page.locator("progress").wait_for(timeout=60000)
    assert re.search(r"\d+ %", column(page, "state")[0])
    page.locator(ROWS).locator(".spark path[d*=L]").wait_for(state="attached", timeout=60000)
    assert re.fullmatch(r"−[\d.]+", column(page, "reward")[0].strip()), "requests that are late cost"
    shoot(page, "controller-learning")
    assert axe(page) == []
    page.locator(ROWS).click()
    page.wait_for_selector(".u-over")
    assert "Bootstrapping" in page.locator("section", has=page.locator("#learning")).inner_text()
    assert "threshold" in page.locator(".tile", has_text="Decided by").inner_text()
    assert "Reward" in page.evaluate("[...document.querySelectorAll('.chart h3')].map(h => h.firstChild.data)")[-1]
    page.locator("a[data-view=list]").click()
    page.wait_for_selector(ROWS)
    assert column(page, "recommender")[0].split("\n") == ["ppo", "threshold decides"]


def test_what_was_found(run, visit, policy):
    """A search that is short may find nothing better: then the general policy decides, and the page names it."""
    controller = run(AT_ONCE)
    page = sign_in(visit, controller, "#/learning")
    found = page.locator(ROWS).get_by_text(re.compile("^(Own policy|General policy)$"))
    found.wait_for(timeout=120000)
    becomes(page, lambda: re.search(r" v\d \w+$", column(page, "policy")[0]))  # with the decision after
    own = found.inner_text() == "Own policy"
    name, policy_line = column(page, "policy")[0].split("\n")
    sha, version, origin = policy_line.split()
    assert re.fullmatch(r"v\d", version) and origin == ("bootstrapped" if own else "shipped")
    assert name == ("a policy of its own" if own else "general policy")
    assert (sha == policy.read_bytes()[20:52].hex()[:12]) == (not own)
    page.locator(ROWS).click()
    page.locator(".marks li.policy", has_text="PolicyFound" if own else "PolicyKept").wait_for(timeout=60000)
    page.locator(".tile", has_text="Decided by").get_by_text("ppo", exact=True).wait_for(timeout=60000)
    assert sha in page.locator("section", has=page.locator("#learning")).inner_text()
    newest = page.locator(".versions tbody tr").first
    newest.get_by_text(re.compile(r"^in \d+ intervals?$")).wait_for(timeout=60000)
    assert re.fullmatch(rf"{version[1:]} {origin} {sha} Decides −[\d.]+ in \d+ intervals? [\d:]+", " ".join(newest.inner_text().split()))
    told = alike.answers(lambda path: json.loads(ask(controller, f"api/v1/{path}", "reader")[1]), ["shop/web"])
    assert alike.values(told["detail"], "state") and alike.values(told["timeline"], "kind") >= {"policy"}
    alike.check(Fake(12), told)
    versions = told["detail"][0]["learning"]["versions"]
    assert versions[0]["sha256"] == told["detail"][0]["learning"]["sha256"] and versions[0]["earned"] < 0
    assert [v["until"] is None for v in versions] == [True] + [False] * (len(versions) - 1), "one of them decides"
    shoot(page, "controller-mpa")
    tour(page, "shop/web")
