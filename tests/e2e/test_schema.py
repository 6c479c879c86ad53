"""The resource's schema on a real API server, and `mpactl validate` beside it: what one refuses the
other refuses, and both name the field."""

import copy
import json
import os
import pathlib
import re
import subprocess

import pytest
import yaml

from harness import ROOT, api_proxy, columns, get, kubectl, post

HERE = pathlib.Path(__file__).parent
CRD = ROOT / "crds" / "multidimpodautoscalers.yaml"
EXAMPLES = [ROOT / "deploy" / "examples" / name for name in ("mpa.yaml", "startup-boost.yaml", "knative-own.yaml",
                                                           "rollout.yaml")]
MPACTL = os.environ.get("MPACTL", str(ROOT / "build" / "mpactl"))

TABLE = yaml.safe_load((HERE / "bad_manifests.yaml").read_text())
MINIMAL = {
    "apiVersion": "autoscaling.faasrl.io/v1alpha1",
    "kind": "MultidimPodAutoscaler",
    "metadata": {"name": "minimal"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "primes"},
        "goals": {"latency": {"target": "300ms"}},
        "constraints": {"global": {"maxReplicas": 3}, "container": [{"name": "*"}]},
    },
}


def find(root, path):
    """The container that the last word of a dotted path is in, and that word as its key."""
    *words, last = path.split(".")
    for word in words:
        root = root[int(word)] if isinstance(root, list) else root.setdefault(word, {})
    return root, int(last) if isinstance(root, list) else last


def changed(base, values=None, remove=None):
    manifest = copy.deepcopy(base)
    for path, value in (values or {}).items():
        parent, key = find(manifest, path)
        parent[key] = value
    if remove:
        parent, key = find(manifest, remove)
        del parent[key]
    return manifest


def row_name(row):
    if "remove" in row:
        return f"no {row['remove']}"
    return ", ".join(f"{path}={json.dumps(value)}" for path, value in row["set"].items())


def mpactl_validate(*manifests):
    text = "\n---\n".join(json.dumps(m) for m in manifests)
    return subprocess.run([MPACTL, "validate", "-f", "-"], input=text, capture_output=True,
                          text=True, timeout=60)


@pytest.fixture(scope="module")
def schema(installed):
    """A namespace of a cluster that has the CRD as it is in the tree."""
    name = f"e2e-schema-{os.getpid()}"
    kubectl("create", "namespace", name, check=False)
    kubectl("label", "namespace", name, "faasrl-e2e=true", "--overwrite")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def dry_run(namespace, manifest, *args):
    return kubectl("apply", "-n", namespace, "--dry-run=server", *args, "-f", "-",
                   stdin=json.dumps(manifest), check=False)


# --- what is refused --------------------------------------------------------------------------
@pytest.mark.parametrize("row", TABLE["rows"], ids=row_name)
def test_api_server_refuses(schema, row):
    done = dry_run(schema, changed(TABLE["base"], row.get("set"), row.get("remove")))
    assert done.returncode != 0, done.stdout
    wanted = row.get("server", row["field"])
    found = re.search(r"(?<![\w.\]])" + re.escape(wanted) + r"(?![\w\[])", done.stderr)
    assert found, done.stderr


@pytest.mark.parametrize("row", TABLE["rows"], ids=row_name)
def test_mpactl_refuses(row):
    done = mpactl_validate(changed(TABLE["base"], row.get("set"), row.get("remove")))
    assert done.returncode == 1, done.stdout + done.stderr
    name = r"-: default/\S+: error: " + re.escape(row["field"]) + ": .+"
    assert re.search(f"^{name}$", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_table_is_long_enough():
    assert len(TABLE["rows"]) >= 45


# --- what is accepted -------------------------------------------------------------------------
GOOD = {
    "base": {},
    "latency of 10m": {"spec.goals.latency.target": "10m"},
    "latency of 1us": {"spec.goals.latency.target": "0.001ms"},
    "latency with two units": {"spec.goals.latency.target": "1m30.5s"},
    "low percentile": {"spec.goals.latency.percentile": 0.5},
    "metrics without latency": {"spec.goals.latency": None},
    "latency without metrics": {"spec.goals.metrics": []},
    "horizontal only": {"spec.constraints.containerControlledResources": []},
    "equal bounds": {"spec.constraints.global.minReplicas": 9},
    "most replicas": {"spec.constraints.global.maxReplicas": 10000},
    "most replicas as kubectl reads 9.0": {"spec.constraints.global.maxReplicas": 9.0},
    "cpu in quotes": {"spec.constraints.container.0.requests.minAllowed.cpu": "0.5"},
    "cpu as the same amount": {"spec.constraints.container.0.requests.minAllowed.cpu": "2000m"},
    "memory as the same amount":
        {"spec.constraints.container.0.requests.minAllowed.memory": "1536Mi"},
    "memory in bytes": {"spec.constraints.container.0.requests.minAllowed.memory": 1000000},
    "no bounds": {"spec.constraints.container.0.requests": {}},
    "no containers": {"spec.constraints.container": []},
    "core group": {"spec.scaleTargetRef.apiVersion": "v1"},
    "alpha group": {"spec.scaleTargetRef.apiVersion": "example.com/v2alpha1"},
    "action": {"spec.scaleTargetRef": {"apiVersion": "openwhisk.apache.org/v1", "kind": "Action",
                                       "name": "me@example.com_dev/my pkg/Do-it.now&then"},
               "spec.constraints.global": None},
    "explicit null": {"spec.constraints.global.behavior": None},
    "unknown recommender": {"spec.recommenders.0.name": "someone-else"},
    "two in one": {"spec.recommenders.0.name": "hpa+vpa"},
    "mode Off": {"spec.policy.updateMode": "Off"},
    "group": {"spec.policy.harvestGroup": "team-1"},
    "boost by a factor": {"spec.policy.startupBoost.cpu": {"type": "Factor", "factor": 2}},
    "boost by a quantity":
        {"spec.policy.startupBoost.cpu": {"type": "Quantity", "quantity": "500m", "durationSeconds": 10}},
    "own": {"spec.policy.knative": "Own"},
    "long name": {"metadata.name": "-".join(["a23456789"] * 7)},
    "status in a manifest": {"status": {"currentReplicas": 1}},
}


@pytest.mark.parametrize("values", GOOD.values(), ids=GOOD.keys())
def test_both_accept(schema, values):
    manifest = changed(TABLE["base"], values)
    done = dry_run(schema, manifest)
    assert done.returncode == 0, done.stderr
    done = mpactl_validate(manifest)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_accepted(schema, example):
    kubectl("apply", "-n", schema, "--dry-run=server", "-f", str(example))
    done = subprocess.run([MPACTL, "validate", "-f", str(example)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == f"{example}: default/primes: valid\n"


def test_defaults(schema):
    done = dry_run(schema, MINIMAL, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spec"] == {
        "scaleTargetRef": MINIMAL["spec"]["scaleTargetRef"],
        "goals": {"latency": {"target": "300ms", "percentile": 99}},
        "constraints": {
            "global": {"minReplicas": 1, "maxReplicas": 3},
            "containerControlledResources": ["cpu"],
            "container": [
                {"name": "*", "mode": "Auto", "controlledValues": "RequestsAndLimits"}],
        },
        "policy": {"updateMode": "Auto", "knative": "Steer"},
        "recommenders": [{"name": "threshold"}],
    }


# --- agreement beyond the table ---------------------------------------------------------------
ODD = [None, True, -1, 0, 1, 1.5, 2**40, 2**62, "", "x", "1", [], ["x"], {}, {"x": 1},
       "1.5", "1.0625", ".5", "1.", "+1", "250m", "1500m", "1Gi", "1.25Gi", "1e3", "100u", "1Ei",
       "99999999999999999999", "10m", "1m1m", "0ms", "5us", "a.b", "a..b", "-a", "A", "*", "v1",
       "a.b/v1beta2", "a/", "é"]


def places(value, path=()):
    """The path of everything below value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()
    for key, below in pairs:
        yield ".".join(map(str, (*path, key)))
        yield from places(below, (*path, key))


def test_verdicts_agree_on_odd_values_everywhere(schema):
    """Every odd value in the place of every field: the same verdict by both."""
    manifests = []
    for path in places(TABLE["base"]["spec"], ("spec",)):
        for value in ODD:
            manifests.append(changed(TABLE["base"], {
                path: value, "metadata.name": f"odd-{len(manifests)}"}))
    said = "".join(mpactl_validate(*manifests[start:start + 100]).stdout
                   for start in range(0, len(manifests), 100))
    valid = set(re.findall(r"^-: default/(odd-\d+): valid$", said, re.MULTILINE))
    assert valid and len(valid) < len(manifests)
    differing = []
    path = (f"/apis/autoscaling.faasrl.io/v1alpha1/namespaces/{schema}"
            "/multidimpodautoscalers?dryRun=All&fieldValidation=Ignore")
    with api_proxy() as url:
        for manifest in manifests:
            status, answer = post(url + path, manifest)
            assert status in (201, 400, 422), answer
            name = manifest["metadata"]["name"]
            if (status == 201) != (name in valid):
                differing.append((answer, re.findall(f"^.*/{name}: .*$", said, re.MULTILINE)))
    assert not differing


# --- unknown fields ---------------------------------------------------------------------------
UNKNOWN = [
    ("spec.goals.latency.percentil", 99, "did you mean percentile?"),
    ("spec.maxReplicas", 3, "did you mean spec.constraints.global.maxReplicas?"),
    ("spec.zebra", 1, "unknown field"),
]


@pytest.mark.parametrize("path,value,words", UNKNOWN)
def test_both_warn_of_unknown_fields(schema, path, value, words):
    manifest = changed(MINIMAL, {path: value})
    done = dry_run(schema, manifest, "--validate=warn")
    assert done.returncode == 0, done.stderr
    assert f'unknown field "{path}"' in done.stderr
    done = mpactl_validate(manifest)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"warning: {re.escape(path)}: .*{re.escape(words)}", done.stdout)


# --- what kubectl shows -----------------------------------------------------------------------
STATUS = {
    "observedGeneration": 1,
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "lastScaleTime": "2026-01-31T12:00:00Z",
    "currentLatency": "p95 212ms",
    "latencyGoal": "300ms",
    "recommendation": {"containerRecommendations": [
        {"containerName": "function", "target": {"cpu": "250m", "memory": "64Mi"},
         "lowerBound": {"cpu": "100m"}, "upperBound": {"cpu": "2"},
         "uncappedTarget": {"cpu": "240m"}},
        {"containerName": "other", "target": {"cpu": "999m"}}]},
    "lastDecision": {"time": "2026-01-31T12:00:00Z", "recommender": "threshold", "action": "Up",
                     "reason": "p95 412ms over goal 300ms", "observation": {"a": [1, {"b": 2.5}]}},
    "conditions": [
        {"type": kind, "status": status, "reason": "Because", "message": "it is so",
         "observedGeneration": 1, "lastTransitionTime": "2026-01-31T12:00:00Z"}
        for kind, status in [("ScalingLimited", "False"), ("Ready", "True"), ("Paused", "False")]],
}


@pytest.fixture(scope="module")
def live(schema):
    """An object with every field and a status."""
    manifest = changed(TABLE["base"], {"metadata.name": "live"})
    kubectl("create", "-n", schema, "-f", "-", stdin=json.dumps(manifest))
    kubectl("patch", "-n", schema, "mpa", "live", "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": STATUS}))
    return schema


DEFAULT_COLUMNS = {
    "NAME": "live", "TARGET": "primes", "MODE": "Auto", "RECOMMENDER": "threshold",
    "REPLICAS": "2", "CPU": "250m", "P99": "p95 212ms", "SLO": "300ms", "READY": "True",
}
WIDE_COLUMNS = {
    "KIND": "Deployment", "DESIRED": "3", "MIN": "2", "MAX": "9", "ACTION": "Up",
    "REASON": "p95 412ms over goal 300ms",
}


def test_columns(live):
    seen = columns(kubectl("get", "-n", live, "mpa", "live").stdout)
    assert list(seen) == [*DEFAULT_COLUMNS, "AGE"]
    assert re.fullmatch(r"\d+[smh]", seen.pop("AGE"))
    assert seen == DEFAULT_COLUMNS


def test_wide_columns(live):
    seen = columns(kubectl("get", "-n", live, "mpa", "live", "-o", "wide").stdout)
    assert list(seen) == [*DEFAULT_COLUMNS, "AGE", *WIDE_COLUMNS]
    assert re.fullmatch(r"\d+[smh]", seen.pop("AGE"))
    assert seen == {**DEFAULT_COLUMNS, **WIDE_COLUMNS}


def test_status_is_kept_whole(live):
    assert get("mpa", "live", live)["status"] == STATUS


def test_status_is_a_subresource(live):
    """Spec writes leave status alone, status writes leave the spec alone; there is no /scale."""
    kubectl("patch", "-n", live, "mpa", "live", "--type=merge", "-p",
            '{"status": {"currentReplicas": 7}}')
    kubectl("patch", "-n", live, "mpa", "live", "--subresource=status", "--type=merge", "-p",
            '{"spec": {"policy": {"updateMode": "Off"}}}')
    seen = get("mpa", "live", live)
    assert seen["status"]["currentReplicas"] == 2
    assert seen["spec"]["policy"]["updateMode"] == "Auto"
    assert kubectl("get", "-n", live, "mpa", "live", "--subresource=scale", check=False).returncode != 0


def test_names(live):
    for name in ("mpa", "multidimpodautoscaler", "multidimpodautoscalers.autoscaling.faasrl.io"):
        kubectl("get", "-n", live, name, "live")


def described(schema, path=()):
    for name, below in schema.get("properties", {}).items():
        if name != "metadata":
            yield (*path, name), below.get("description", "")
            yield from described(below, (*path, name))
    if "items" in schema:
        yield from described(schema["items"], path)


def test_every_field_is_explained(schema):
    crd = yaml.safe_load(CRD.read_text())
    top = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    missing = [".".join(path) for path, text in described(top) if len(text) < 4]
    assert not missing
    text = kubectl("explain", "-n", schema, "mpa.spec.goals.latency.target").stdout
    assert "300ms" in text


# --- mpactl's manners -------------------------------------------------------------------------
@pytest.mark.parametrize("args,status", [
    ([], 2), (["frobnicate"], 2), (["validate"], 2), (["validate", "file"], 2),
    (["validate", "-f"], 2), (["validate", "-x"], 2), (["validate", "-f", "/nonexistent"], 1),
    (["help"], 0), (["--version"], 0),
])
def test_mpactl_exit_status(args, status):
    done = subprocess.run([MPACTL, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    assert (done.stderr == "") == (status == 0)
    if status == 1:
        assert re.fullmatch(r"mpactl: \S+: .+: .+\n", done.stderr)


def test_mpactl_reads_several_files_and_kinds(tmp_path):
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    bad = changed(MINIMAL, {"metadata.namespace": "shop", "metadata.name": "bad",
                            "spec.constraints.global.minReplicas": 4})
    first, second = tmp_path / "first.yaml", tmp_path / "second.json"
    first.write_text(yaml.safe_dump_all([other, MINIMAL]))
    second.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [other, bad]}))
    done = subprocess.run([MPACTL, "validate", "-f", first, "-f", second], capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{first}: default/minimal: valid",
        f"{second}: shop/bad: error: spec.constraints.global.minReplicas: "
        "4 is more than maxReplicas 3",
    ]
    assert f"{first}: Service/web skipped" in done.stderr


def test_mpactl_wants_something_to_validate(tmp_path):
    file = tmp_path / "service.yaml"
    file.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n")
    done = subprocess.run([MPACTL, "validate", "-f", file], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no MultidimPodAutoscaler" in done.stderr
