"""That what the fake tells has the shape of what a real controller tells: the same keys, and the same kinds of values."""
import re
from pathlib import Path

CONTROLLER = Path(__file__).resolve().parents[2] / "pkg/controller"
# Words that the page knows: those that the sources of the controller have in the function or the table named.
WORDS = {"health": ("tell.c", r"static const char \*health_of\(.*?\n}\n"), "kind": ("tell.c", r"kinds\[\] = {.*?};"),
         "origin": ("tell.c", r"origins\[LEARN_ORIGIN_COUNT\] = {.*?};"), "outcome": ("tell.c", r"outcomes\[LEARN_OUTCOME_COUNT\] = {.*?};"),
         "state": ("learning.c", r"static const char \*state_of\(.*?\n}\n"), "title": ("story.c", r"static void mark_decision\(.*?\n}\n")}


def shape(value):
    """Keys with the shapes below them; of a list that of all its items together; a type. None is any of these."""
    if isinstance(value, dict):
        return {key: shape(v) for key, v in value.items()}
    if isinstance(value, list):
        of_all = None
        for item in value:
            of_all = both(of_all, shape(item), "item")
        return [of_all]
    return None if value is None else "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def both(a, b, where):
    """What two shapes have in common, which is all but for what is not known of one."""
    if a is None or b is None:
        return b if a is None else a
    assert type(a) is type(b), f"{where}: {a} and {b}"
    if isinstance(a, dict):
        assert set(a) == set(b), f"{where}: only one has {set(a) ^ set(b)}"
        return {key: both(a[key], b[key], f"{where}.{key}") for key in a}
    if isinstance(a, list):
        return [both(a[0], b[0], f"{where}[]")]
    assert a == b, f"{where}: {a} and {b}"
    return a


def values(answer, name):
    """All words that stand under a key, anywhere."""
    if isinstance(answer, list):
        return set().union(*(values(item, name) for item in answer))
    if not isinstance(answer, dict):
        return set()
    return {v for k, v in answer.items() if k == name and isinstance(v, str)}.union(*(values(v, name) for v in answer.values()))


def words(name):
    """Those that the controller can tell, by its sources."""
    file, pattern = WORDS[name]
    part = re.search(pattern, (CONTROLLER / file).read_text(), re.S)[0]
    return set(re.findall(r'"([a-zA-Z ]+)"', part))


def answers(ask, mpas):
    """By name: about, mpas and learning, and detail and timeline of these MPAs."""
    return {**{path: [ask(path)] for path in ("about", "mpas", "learning")}, "detail": [ask(f"mpas/{m}") for m in mpas],
            "timeline": [ask(f"mpas/{m}/timeline") for m in mpas]}


def of_fake(fake):
    return answers(lambda path: fake.answer(path, {}), sorted(fake.rows))


def check(fake, real):
    """real: answers() of a controller, which need not have all that the fake has, and the other way round."""
    for path, told in of_fake(fake).items():
        both(shape(told), shape(real[path]), path)
        for name in ("health", "kind", "state", "origin", "outcome"):
            assert values(real[path], name) <= words(name)
