"""What the other tests rest upon: the fake tells what a controller tells, in its words, and the page knows just these.
test_controller.py and test_simulated.py hold it against controllers that run."""
import re
from pathlib import Path

import pytest

import alike
from fake import Fake

SOURCES = Path(__file__).resolve().parents[2] / "pkg/controller/page"


def of_page(file, table):
    """Keys of a table in the page's sources."""
    body = re.search(rf"const {table} = {{(.*?)}};", (SOURCES / file).read_text(), re.S)[1]
    return set(re.findall(r"(\w+): ", re.sub(r"{.*?}", "", body)))


@pytest.fixture(scope="module")
def told():
    return list(alike.of_fake(Fake(12)).values())


def test_states_of_learning(told):
    assert alike.values(told, "state") == alike.words("state") == of_page("text.js", "LEARNING")


def test_versions_of_policies(told):
    assert alike.values(told, "origin") == alike.words("origin") == of_page("text.js", "ORIGINS")
    assert alike.values(told, "outcome") == alike.words("outcome") == of_page("text.js", "OUTCOMES")


def test_health(told):
    assert alike.values(told, "health") == of_page("text.js", "HEALTH") <= alike.words("health")


def test_marks(told):
    assert alike.values(told, "kind") <= alike.words("kind") == of_page("marks.js", "KINDS")
    titles = {m["title"] for answers in told for a in answers for m in a.get("marks", []) if m["kind"] == "decision"}
    assert len(titles) > 2 and {part for title in titles for part in title.split(", ")} <= alike.words("title")


def test_who_decides_agrees_with_what_is_said(told):
    rows = [row for answers in told for a in answers for row in a.get("items", []) if "decidedBy" in row]
    learned = {f"{i['namespace']}/{i['name']}": i for answers in told for a in answers for i in a.get("items", []) if "fallback" in i}
    for row in rows:
        item = learned.get(f"{row['namespace']}/{row['name']}", {"fallback": False})
        assert item["fallback"] == (row["decidedBy"] != row["recommender"])


@pytest.mark.parametrize("change", [lambda row: row.pop("percentile"), lambda row: row.update(more=1), lambda row: row.update(goalMs="250ms")])
def test_a_difference_would_be_seen(change):
    other = Fake(12)
    alike.check(Fake(12), alike.of_fake(other))
    change(other.rows["shop/cart"])
    with pytest.raises(AssertionError):
        alike.check(Fake(12), alike.of_fake(other))
