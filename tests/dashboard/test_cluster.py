"""The dashboard of a controller on the real cluster: signing in with a token of its own, an MPA that comes while the page is
open, real load, decisions with their reasons. Skipped, with a word, where no cluster is up."""
import re
import sys
import urllib.request
from pathlib import Path

import pytest

from conftest import ROWS, column, names, tour
from test_look import shoot

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402  (its place is only known now)

PORT = 18091
URL = f"http://127.0.0.1:{PORT}/"
READER = "dashboard-reader"


@pytest.fixture(scope="module")
def cluster():
    if not (harness.RUN / "up").exists():
        pytest.skip("no cluster is up: make cluster-up")
    if not harness.has_real_node():
        pytest.skip("needs real pods, and this cluster has only kwok nodes")
    harness.OUT.mkdir(parents=True, exist_ok=True)
    harness.install_crds()
    harness.kubectl("apply", "-f", harness.ROOT / "deploy/rbac.yaml")
    harness.cluster("load-image", harness.BUILD / "function.tar")
    with harness.new_namespace() as namespace:
        yield namespace


@pytest.fixture(scope="module")
def token(cluster):
    """Of one who may list MPAs, and nothing else."""
    harness.kubectl("create", "serviceaccount", READER, "-n", cluster)
    harness.kubectl("create", "clusterrole", READER, "--verb=list",
                    "--resource=multidimpodautoscalers.autoscaling.faasrl.io")
    harness.kubectl("create", "clusterrolebinding", READER, f"--clusterrole={READER}",
                    f"--serviceaccount={cluster}:{READER}")
    yield harness.token(READER, cluster).strip()
    harness.kubectl("delete", "clusterrole,clusterrolebinding", READER)


def serves():
    try:
        with urllib.request.urlopen(URL, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def controller(cluster, policy):
    harness.deploy_function(cluster)
    with harness.Controller("dashboard-page", f"--listen=127.0.0.1:{PORT}", f"--policy={policy}") as running:
        harness.wait("it serves", serves, 30)
        yield running


def sign_in(visit, token):
    visit.allow(r"401")  # of which the browser itself complains
    page = visit.open(URL, wait="#token")
    page.locator("#token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text(re.compile("does not know the token")).wait_for()
    page.locator("#token").fill(token)
    page.keyboard.press("Enter")
    page.locator("#link.live").wait_for()
    return page


@pytest.fixture(scope="module")
def learner(controller):
    """The namespace of another, which asks for ppo and only tells."""
    with harness.new_namespace() as namespace:
        harness.deploy_function(namespace)
        harness.apply(harness.EXAMPLE.replace("name: threshold", "name: ppo").replace("updateMode: Auto", 'updateMode: "Off"'), namespace)
        yield namespace


def test_an_mpa_that_comes_under_load(cluster, token, controller, learner, visit):
    page = sign_in(visit, token)
    mine = f"{cluster}/primes"
    assert mine not in names(page)
    harness.apply(harness.EXAMPLE, cluster)
    page.locator(ROWS, has_text=cluster).wait_for()
    assert page.evaluate("sessionStorage.length") >= 1 and token not in page.content()
    row = names(page).index(mine)
    with harness.Load(harness.function_url(cluster, "/sentiment"), "25@60s", "--call-ms=13"):
        harness.wait("latency is shown", lambda: page.wait_for_timeout(100) or re.search(
            r"\d m?s", column(page, "latency")[row]), 45)
        page.locator(ROWS, has_text=cluster).click()
        page.wait_for_selector(".u-over")
        page.locator(".marks li").first.wait_for(timeout=60000)
    assert re.search(r"→", page.locator(".marks li").first.inner_text())
    assert "Ready" in page.locator(".conditions").inner_text()
    shoot(page, "cluster-mpa")
    page.locator("a[data-view=learning]").click()
    page.locator(ROWS, has_text=learner).wait_for()
    assert names(page) == [f"{learner}/primes"]
    tour(page, mine)
    page.locator("#search").fill("")
    harness.kubectl("delete", "mpa", "primes", "-n", cluster)
    page.locator(ROWS, has_text=cluster).wait_for(state="detached")
    page.locator("#sign-out").click()
    page.wait_for_selector("#token")
    assert page.evaluate("sessionStorage.length") == 0
