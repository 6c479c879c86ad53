"""Nothing of an autoscaler is dropped in silence by mpactl convert: each leaf of each manifest of tests/convert is found in the MPA
that comes of it, or is told; and so is whatever is put into one of them.

Exempt, as docs/migrate.md has it: apiVersion and kind, the name (an MPA takes that of one of its autoscalers), status, what else the
API server fills in, and annotations of kubectl and of what is status."""
import copy
import re
import subprocess

import pytest
import yaml

from test_convert import FILES, KINDS, MPACTL, metric, run

EXEMPT = re.compile(r"(apiVersion|kind|status\b.*|metadata\.(name|namespace|generateName|uid|resourceVersion|generation|selfLink"
                    r"|creationTimestamp|managedFields.*|annotations\.(kubectl\.kubernetes\.io/.*"
                    r"|autoscaling\.alpha\.kubernetes\.io/(conditions|current-metrics))))$")
KEDAS_OWN = {"autoscaling.keda.sh/paused-scale-in": "scaleDown", "autoscaling.keda.sh/paused-scale-out": "scaleUp"}
MODES = {"Off": "Off", "Initial": "Initial"}  # others resize


# --- reading, with the line of each leaf ---------------------------------------------------------
class Autoscaler:
    def __init__(self, node):
        self.object = yaml.SafeLoader("").construct_document(node)
        self.first, self.last = node.start_mark.line + 1, node.end_mark.line + 1
        self.leaves = dict(leaves(self.object))


def leaves(value, path=""):
    """(path, value) of all that holds no other; what is empty says nothing."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from leaves(member, f"{path}[{i}]")
    elif value is not None:
        yield path, value


def child(node, key):
    return next((v for k, v in node.value if k.value == key), None) if isinstance(node, yaml.MappingNode) else None


def is_ours(one):
    """KEDA makes HPAs of its own."""
    return one["kind"] in KINDS and "ScaledObject" not in [o["kind"] for o in one["metadata"].get("ownerReferences", [])]


def autoscalers(text):
    """All of a file that are converted."""
    for document in yaml.compose_all(text, yaml.SafeLoader):
        items = child(document, "items")
        found = [Autoscaler(node) for node in (items.value if items else [document])]
        yield from (one for one in found if one.object and is_ours(one.object))


# --- what is told, and what is kept --------------------------------------------------------------
def told(said):
    """(line, field, message) of every note."""
    return [(int(line), field, message) for line, field, message in re.findall(r"^\S+?:(\d+): (.+?): (.*)", said, re.M)]


def is_told(notes, one, path):
    """By itself, or with something that it is in and that is left out as a whole."""
    for line, field, message in notes:
        whole = re.search("left out|that is kept", message)
        if one.first <= line <= one.last and (path == field or whole and path.startswith((field + ".", field + "["))):
            return True
    return False


def is_of_idle_vpa(said, path):
    """Beside an HPA a VPA in mode Off sets nothing, which is told once for all of it."""
    return "empty, since the VPA is in mode Off" in said and re.search(r"updateMode$|\.controlledResources\[", path)


def is_differing(notes, path):
    """Resources that only some of the containers let be set."""
    return ".controlledResources[" in path and any("those that all of them" in message for _, _, message in notes)


def at(value, path):
    for key in re.findall(r"[^.\[\]]+", path):
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


def metric_of(trigger):
    kind = trigger.get("metricType") or trigger["metadata"].get("type", "Utilization")
    value = trigger["metadata"]["value"]
    return metric(trigger["type"], int(value) if kind == "Utilization" else value, kind,
                  trigger["metadata"].get("containerName"))


def share(value):
    return float(value[:-1]) / 1000 if str(value).endswith("m") else float(value)


def same(a, b):
    return a == b or str(a) == str(b)


def in_behavior(mpa, path, value):
    found = at(mpa["spec"]["constraints"]["global"].get("behavior"), path)
    return found == share(value) if path.endswith("tolerance") else found == value


def in_container(one, mpa, index, field, value):
    name = one["spec"]["resourcePolicy"]["containerPolicies"][int(index)]["containerName"]
    found = next((c for c in mpa["spec"]["constraints"].get("container", []) if c["name"] == name), {})
    if field.startswith("controlledResources"):
        return value in mpa["spec"]["constraints"]["containerControlledResources"]
    if field.startswith(("minAllowed", "maxAllowed")):
        return same(at(found.get("requests"), field), value)
    return same(found.get({"containerName": "name"}.get(field, field)), "Off" if value is False else value)


def annotation(mpa, key, value):
    if key in KEDAS_OWN:
        return in_behavior(mpa, f"{KEDAS_OWN[key]}.selectPolicy", "Disabled")
    key = "autoscaling.faasrl.io/paused" if key == "autoscaling.keda.sh/paused" else key
    return mpa["metadata"].get("annotations", {}).get(key) == value


def goals(mpa):
    return mpa["spec"]["goals"].get("metrics", [])


def bounds(mpa):
    return mpa["spec"]["constraints"]["global"]


# Where a field is to be found again: its path, and whether it is there.
KEPT = [
    (r"metadata\.labels\.(.*)", lambda one, mpa, value, key: mpa["metadata"].get("labels", {}).get(key) == value),
    (r"metadata\.annotations\.(.*)", lambda one, mpa, value, key: annotation(mpa, key, value)),
    (r"spec\.(?:scaleTargetRef|targetRef)\.(apiVersion|kind|name)",
     lambda one, mpa, value, key: mpa["spec"]["scaleTargetRef"][key] == value),
    (r"spec\.(min|max)Replica(?:s|Count)", lambda one, mpa, value, side: bounds(mpa)[f"{side}Replicas"] == value),
    (r"spec\.targetCPUUtilizationPercentage", lambda one, mpa, value: metric("cpu", value) in goals(mpa)),
    (r"spec\.metrics\[(\d+)\].*", lambda one, mpa, value, i: one["spec"]["metrics"][int(i)] in goals(mpa)),
    (r"spec\.triggers\[(\d+)\]\.(?:type|metricType|metadata\.(?:value|type|containerName))",
     lambda one, mpa, value, i: metric_of(one["spec"]["triggers"][int(i)]) in goals(mpa)),
    (r"spec\.(?:advanced\.horizontalPodAutoscalerConfig\.)?behavior\.(.*)",
     lambda one, mpa, value, path: in_behavior(mpa, path, value)),
    (r"spec\.updatePolicy\.updateMode",
     lambda one, mpa, value: mpa["spec"]["policy"]["updateMode"] == MODES.get(value or "Off", "Auto")),
    (r"spec\.resourcePolicy\.containerPolicies\[(\d+)\]\.(containerName|mode|controlledValues|controlledResources\[\d+\]"
     r"|(?:minAllowed|maxAllowed)\.(?:cpu|memory))",
     lambda one, mpa, value, i, field: in_container(one, mpa, i, field, value)),
    (r"spec\.startupBoost\.(.*)",
     lambda one, mpa, value, path: same(at(mpa["spec"]["policy"].get("startupBoost"), path), value)),
]


def is_kept(one, mpas, path, value):
    ref = one["spec"].get("scaleTargetRef") or one["spec"]["targetRef"]
    for mpa in mpas:
        if mpa["spec"]["scaleTargetRef"]["name"] != ref["name"]:
            continue
        for pattern, found in KEPT:
            match = re.fullmatch(pattern, path)
            if match and found(one, mpa, value, *match.groups()):
                return True
    return False


def lost(text, *options):
    """Of what the converter reads, all that is neither kept nor told."""
    out, said = run("-f", "-", *options, stdin=text)
    mpas, notes = list(yaml.safe_load_all(out)), told(said)
    return [(path, value) for one in autoscalers(text) for path, value in one.leaves.items()
            if not EXEMPT.match(path) and not is_told(notes, one, path) and not is_kept(one.object, mpas, path, value)
            and not is_of_idle_vpa(said, path) and not is_differing(notes, path)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("options", [(), ("--latency", "300ms")], ids=["as before", "with a latency goal"])
def test_each_leaf_is_kept_or_told(path, options):
    assert lost(path.read_text(), *options) == []


def test_autoscalers_of_one_target_lose_nothing():
    """Of all files together, where some have a target in common with others."""
    shared = {"hpa-cpu", "vpa-auto", "hpa-behavior", "both"}
    assert lost("\n---\n".join(path.read_text() for path in FILES if path.stem in shared)) == []


# --- what nobody knows ---------------------------------------------------------------------------
def places(value, path=()):
    """All fields and members, by the keys that lead to them."""
    if path:
        yield path
    for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(member, (*path, key))


def spoiled(one, path, change):
    """A copy where change has made something else of what is at the path."""
    out = copy.deepcopy(one)
    inside = reach(out, path[:-1])
    inside[path[-1]] = change(inside[path[-1]])
    return out


def reach(value, path):
    for key in path:
        value = value[key]
    return value


def field(path):
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(map(str, path)))


def is_silent(one, path, mark):
    """Neither refused, nor in the MPA, nor told by itself or with what it is in."""
    done = subprocess.run([MPACTL, "convert", "-f", "-"], input=yaml.safe_dump(one), capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1) and "Sanitizer" not in done.stderr
    here = field(path)
    left_out = (name for _, name, message in told(done.stderr) if "left out" in message)
    return (done.returncode == 0 and mark not in done.stdout + done.stderr
            and not any(here == name or here.startswith((name + ".", name + "[")) for name in left_out))


ALL = [(path.stem, one.object) for path in FILES for one in autoscalers(path.read_text())]
EACH = pytest.mark.parametrize("one", [o for _, o in ALL], ids=[f"{stem}-{o['metadata']['name']}" for stem, o in ALL])


@EACH
def test_unknown_fields_are_told_wherever_they_stand(one):
    mappings = [p for p in places(one) if isinstance(reach(one, p), dict) and not EXEMPT.match(field(p))]
    assert mappings and [field(p) for p in mappings
                         if is_silent(spoiled(one, p, lambda mapping: {**mapping, "madeUp": "x"}), p, "madeUp")] == []


@EACH
def test_fields_of_another_type_are_refused_or_told(one):
    def other(value):
        return 4711 if isinstance(value, str) else "4711"
    assert [field(p) for p in places(one) if not EXEMPT.match(field(p)) and is_silent(spoiled(one, p, other), p, "4711")] == []
