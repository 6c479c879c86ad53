"""The documentation as a whole: links lead somewhere, pages can be found, and what they name is there."""
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/alerts"))
from test_metrics import documented  # noqa: E402

DOCS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md",
               *(ROOT / "tests").rglob("README.md")])
EVERY = pytest.mark.parametrize("page", DOCS, ids=[str(p.relative_to(ROOT)) for p in DOCS])
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def prose(page):
    """Without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def code(page):
    return re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page):
    """Of its headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = sum(1 for f in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", f))
        found.add(f"{slug}-{count}" if count else slug)
    return found


def links(page):
    """Files and anchors that it links to, inside of the project."""
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        yield target, (page.parent / path).resolve() if path else page, anchor


@EVERY
def test_links_lead_somewhere(page):
    for target, path, anchor in links(page):
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}: no such heading"


def test_every_page_can_be_found():
    found, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        ahead += [path for _, path, _ in links(page) if path.exists()]
    lost = {str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md") if p not in found}
    assert not lost


# --- what is named in the text -----------------------------------------------------------------------
TOP = ("pkg/", "cmd/", "docs/", "tests/", "tools/", "deploy/", "charts/", "crds/", "python/")


@EVERY
def test_files_that_are_named_are_there(page):
    for text in code(page):
        path = re.match(r"[\w./*-]+", text)
        if path and path[0].startswith(TOP) and not re.search(r"[ {]|NAME", text):
            name = path[0].rstrip("/.")
            assert list(ROOT.glob(name)) or list(ROOT.glob(f"{name}.[ch]")), f"{page.name}: {text}"


# Of kubectl, helm and others.
FOREIGN = {"--set", "--server-side", "--take-ownership", "--reset-then-reuse-values", "--force-conflicts", "--previous",
           "--logdir", "--manifest", "--archive"}


def options():
    """All that a program of ours takes. In C they stand in tables, without dashes."""
    found = set(FOREIGN)
    for path in (p for top in ("cmd", "tools", "tests", "python") for p in (ROOT / top).rglob("*")):
        if not path.is_file() or path.suffix not in ("", ".c", ".h", ".py", ".sh") or path.parent.name == "docs":
            continue
        text = path.read_text(errors="replace")
        found.update(f"--{name}" for name in re.findall(r'\{"([a-z][a-z0-9-]+)",\s+ARGS_', text))
        found.update(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))
    return found


OPTIONS = options()


@EVERY
def test_options_that_are_named_are_there(page):
    for text in code(page):
        for option in re.findall(r"(?:^| )(--[a-z][a-z0-9-]+)", text):
            assert option in OPTIONS, f"{page.name}: {text}"


TARGETS = set(re.findall(r"^([a-z][a-z0-9-]*)(?: [a-z0-9-]+)*:(?!=)", (ROOT / "Makefile").read_text(), re.M))
COMMANDS = set(re.findall(r'^    \{"([a-z]+)", "', (ROOT / "cmd/mpactl/main.c").read_text(), re.M)) | {"help"}


@EVERY
def test_commands_that_are_named_are_there(page):
    assert len(TARGETS) > 20 and len(COMMANDS) > 8
    for text in re.findall(r"`([^`\n]+)`|^(?:\$ )?(make .*)$", page.read_text(), re.M):
        words = [w for w in (text[0] or text[1]).split("#")[0].split() if not w.startswith("-")]
        if words[:1] == ["make"] and len(words) > 1 and re.fullmatch("[a-z-]+", words[1]):
            assert words[1] in TARGETS, " ".join(words)
        if words[:1] == ["mpactl"] and len(words) > 1 and re.fullmatch("[a-z]+", words[1]):
            assert words[1] in COMMANDS, " ".join(words)


@EVERY
def test_metrics_that_are_named_are_exported(page):
    known = documented()
    for name in re.findall(r"\bfaasrl_mpa_[a-z_]+\b(?!\*)", page.read_text()):
        assert re.sub(r"_(bucket|sum|count)$", "", name) in known, name


OTHERS_VALUES = {"metrics.userMetricsEnabled"}  # of OpenWhisk's chart
VALUES = yaml.safe_load((ROOT / "charts/faasrl-mpa/values.yaml").read_text())


def has_value(path):
    at = VALUES
    for key in path:
        if not isinstance(at, dict) or key not in at:
            return isinstance(at, dict) and not at  # a map of your own
        at = at[key]
    return True


@EVERY
def test_values_of_the_chart_that_are_named_are_there(page):
    for text in code(page):
        found = re.fullmatch(r"([a-zA-Z]+(?:\.[a-zA-Z_]+)+)(?:\.\*)?(?:[=:].*)?", text)
        path = found[1].split(".") if found else [""]
        if found and found[1] in OTHERS_VALUES:
            continue
        if path[0] in VALUES and isinstance(VALUES[path[0]], dict) and path[-1] not in ("c", "h", "md", "py"):
            assert has_value(path), f"{page.name}: {text}"


FIELDS = set(re.findall(r"^\| `((?:spec|status)[^`]*)`", (ROOT / "docs/api.md").read_text(), re.M))


def of_the_resource(path):
    plain = [f.replace("[]", "") for f in FIELDS]
    return any(f == path or f.startswith(path + ".") for f in plain)


@pytest.mark.parametrize("page", [p for p in DOCS if p.parent.name == "docs" and p.name in (
    "operations.md", "own-recommender.md", "install.md", "alerts.md", "metrics.md", "faq.md", "security.md",
    "tutorial.md", "harvest.md", "adaptation.md", "journal.md")], ids=lambda p: p.name)
def test_fields_that_are_named_are_there(page):
    """On the pages that speak of our resource alone; elsewhere spec is also a pod's."""
    assert len(FIELDS) > 50
    for text in code(page):
        path = re.fullmatch(r"((?:spec|status)\.[a-zA-Z.\[\]]+)(?:: .*)?", text)
        if path:
            assert of_the_resource(path[1].replace("[]", "").rstrip(".")), text


def fields(schema, path):
    """Every field of the resource, by the CRD itself."""
    for name, below in schema.get("properties", {}).items():
        yield f"{path}{name}", below
        yield from fields(below, f"{path}{name}.")
        yield from fields(below.get("items", {}), f"{path}{name}[].")


def test_the_reference_has_every_field():
    crd = yaml.safe_load((ROOT / "crds/multidimpodautoscalers.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    every = dict(f for part in ("spec", "status") for f in fields(schema[part], f"{part}."))
    leaves = {path for path, below in every.items() if not below.get("properties")
              and not below.get("items", {}).get("properties")}
    assert len(leaves) > 50 and not leaves - FIELDS
    assert not [path for path in leaves if not every[path].get("description")]


# --- what the controller may do --------------------------------------------------------------------
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}


def rights_told(page):
    """Resource → verbs, of the table of rights: "create `leases`; get, update its own"."""
    table, found = re.search(r"^\| right \|(\n?.)*", page, re.M)[0], {}
    for row in table.splitlines()[2:]:
        resources = []
        for part in row.split("|")[1].split(";"):
            resources = re.findall(r"`([^`]+)`", part) or resources
            for resource in resources:
                found.setdefault(resource, set()).update(VERBS & set(re.findall(r"[a-z]+", part.split("`")[0])))
    return found


def rights_given():
    """The same, of the roles."""
    found = {}
    for role in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()):
        for rule in role.get("rules", []):
            for resource in rule["resources"]:
                found.setdefault(resource, set()).update(rule["verbs"])
    return found


def test_every_right_is_told():
    page = (ROOT / "docs/security.md").read_text()
    assert len(rights_given()) > 10 and rights_told(page) == rights_given()
    for told, other in (("`tokenreviews`, ", ""), ("| patch `pods/resize`", "| patch, delete `pods/resize`")):
        assert told in page and rights_told(page.replace(told, other)) != rights_given()


def test_a_wrong_name_would_be_found():
    assert "--no-such-option" not in OPTIONS and "no-such-target" not in TARGETS
    assert not has_value(["metrics", "perPod"]) and has_value(["metrics", "perMpa"])
    assert not of_the_resource("spec.goals.latencies") and of_the_resource("spec.goals.latency.query")
    assert "no-such-heading" not in anchors(ROOT / "docs/install.md") and "values" in anchors(ROOT / "docs/install.md")
