"""mpactl convert on manifests as people write them (tests/convert): what is carried over, and that what is not
is told. tests/e2e/test_convert.py asks a real API server whether it takes the results."""
import os
import pathlib
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPACTL = ROOT / os.environ.get("MPACTL", "build/mpactl")
DATA = ROOT / "tests/convert"
FILES = sorted(DATA.glob("*.yaml"))
KINDS = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ScaledObject")


def run(*argv, code=0, stdin=None):
    done = subprocess.run([MPACTL, "convert", *argv], capture_output=True, text=True, timeout=60, input=stdin,
                          cwd=DATA)
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert "Sanitizer" not in done.stderr
    return done.stdout, done.stderr


def convert(*names, options=()):
    """The one MPA that comes of these files, and what was told."""
    out, said = run(*(a for name in names for a in ("-f", name)), *options)
    manifests = list(yaml.safe_load_all(out))
    assert len(manifests) == 1
    return manifests[0], said


def metric(name, value, kind="Utilization", container=None):
    target = {"type": kind, "averageUtilization" if kind == "Utilization" else "averageValue": value}
    if container:
        return {"type": "ContainerResource",
                "containerResource": {"name": name, "container": container, "target": target}}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def test_there_are_enough():
    assert len(FILES) >= 20


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("options", [(), ("--latency", "300ms", "--percentile", "95", "--replicas", "3")],
                         ids=["as before", "with a latency goal"])
def test_results_are_valid_and_say_what_they_lack(path, options):
    out, said = run("-f", path, *options)
    done = subprocess.run([MPACTL, "validate", "-f", "-"], input=out, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout
    comments = [line[2:] for line in out.splitlines() if line.startswith("# ")]
    assert comments == [line for line in said.splitlines() if " skipped: " not in line]
    lines = path.read_text().splitlines()
    for line in comments:  # FILE:LINE: PATH: MESSAGE; the line is where the field is
        if line.startswith("MPA "):
            continue
        place, field = line.split(": ")[:2]
        text = lines[int(place.rsplit(":", 1)[1]) - 1]
        last = field.split("/")[-1] if "annotations" in field else field.split(".")[-1]
        assert last.split("[")[0] in text or "[" in last or "minReplicaCount" in last, line


def autoscalers(path):
    """Of a file, but for HPAs that KEDA has made."""
    for document in yaml.safe_load_all(path.read_text()):
        for one in document["items"] if document and document["kind"] == "List" else [document]:
            if one and one["kind"] in KINDS and not any(o["kind"] == "ScaledObject" for o in one["metadata"].get("ownerReferences", [])):
                yield one


def replicas_of(spec):
    """Bounds by the manuals of HPA and KEDA; None: a VPA."""
    if "maxReplicas" in spec:
        return max(1, spec.get("minReplicas", 1)), spec["maxReplicas"]
    return (max(1, spec.get("minReplicaCount", 0)), spec.get("maxReplicaCount", 100)) if "triggers" in spec else None


def targets_of(spec):
    """Usage of cpu and memory that was held, in the shape of goals.metrics, by what the manifest says itself."""
    if "targetCPUUtilizationPercentage" in spec:
        yield metric("cpu", spec["targetCPUUtilizationPercentage"])
    for one in spec.get("metrics", []):
        if one["type"] in ("Resource", "ContainerResource"):
            yield one
    for trigger in spec.get("triggers", []):
        if trigger["type"] in ("cpu", "memory"):
            kind = trigger.get("metricType") or trigger["metadata"].get("type", "Utilization")
            value = trigger["metadata"]["value"]
            yield metric(trigger["type"], int(value) if kind == "Utilization" else value, kind,
                         trigger["metadata"].get("containerName"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("options", [(), ("--latency", "300ms")], ids=["as before", "with a latency goal"])
def test_bounds_and_targets_are_kept(path, options):
    """Of every manifest, read here once more."""
    mpas = list(yaml.safe_load_all(run("-f", path, *options)[0]))
    for one in autoscalers(path):
        ref = one["spec"].get("scaleTargetRef") or one["spec"]["targetRef"]
        mpa, = [m["spec"] for m in mpas if m["spec"]["scaleTargetRef"]["name"] == ref["name"]]
        assert mpa["scaleTargetRef"]["kind"] == ref.get("kind", "Deployment")
        if bounds := replicas_of(one["spec"]):
            found = mpa["constraints"]["global"]
            assert (found.get("minReplicas", 1), found["maxReplicas"]) == bounds
        assert all(target in mpa["goals"]["metrics"] for target in targets_of(one["spec"]))
        having = {c["name"]: c for c in mpa["constraints"].get("container", [])}
        for policy in one["spec"].get("resourcePolicy", {}).get("containerPolicies", []):
            for side in ("minAllowed", "maxAllowed"):
                want = {k: str(v) for k, v in policy.get(side, {}).items() if k in ("cpu", "memory")}
                found = having.get(policy["containerName"], {}).get("requests", {}).get(side, {})
                assert {k: str(v) for k, v in found.items()} == want


def test_hpa():
    mpa, said = convert("hpa-cpu.yaml")
    assert mpa["metadata"] == {"name": "checkout", "namespace": "shop",
                               "labels": {"app.kubernetes.io/name": "checkout"},
                               "annotations": {"example.org/owner": "payments"}}
    assert mpa["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"},
        "goals": {"metrics": [metric("cpu", 65)]},
        "constraints": {"global": {"minReplicas": 2, "maxReplicas": 20}, "containerControlledResources": []},
        "policy": {"updateMode": "Auto"}, "recommenders": [{"name": "hpa"}]}
    assert said.splitlines() == ["MPA checkout: spec.constraints.containerControlledResources: empty, so that only "
                                 "replicas are set, as before; [cpu] has CPU set too"]


@pytest.mark.parametrize("name, metrics", [
    ("hpa-memory", [metric("memory", "512Mi", "AverageValue"), metric("cpu", "500m", "AverageValue")]),
    ("hpa-container", [metric("cpu", 60, container="application")]),
    ("hpa-all-metrics", [metric("cpu", 50)]),
    ("hpa-no-metrics", [metric("cpu", 80)]),  # what the API server fills in
    ("hpa-v1", [metric("cpu", 75)]),
    ("hpa-v2beta2", [metric("memory", 80)]),
    ("keda-cpu", [metric("cpu", 60), metric("memory", "300Mi", "AverageValue", "worker")]),
    ("keda-cron-zero", [metric("cpu", 50)]),
    ("keda-prometheus", [metric("cpu", 70)]),
])
def test_metrics(name, metrics):
    assert convert(f"{name}.yaml")[0]["spec"]["goals"] == {"metrics": metrics}


def test_metrics_that_cannot_be_goals_are_told():
    said = convert("hpa-all-metrics.yaml")[1]
    for place in ("hpa-all-metrics.yaml:13: spec.metrics[0]", "hpa-all-metrics.yaml:26: spec.metrics[2]",
                  "hpa-all-metrics.yaml:37: spec.metrics[3]"):
        assert place in said
    assert "spec.metrics[1]" not in said


def test_behavior():
    behavior = convert("hpa-behavior.yaml")[0]["spec"]["constraints"]["global"]["behavior"]
    assert behavior == {
        "scaleUp": {"stabilizationWindowSeconds": 30, "selectPolicy": "Max", "tolerance": 0.05,
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 60},
                                 {"type": "Pods", "value": 5, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 600, "selectPolicy": "Min", "tolerance": 0.05,
                      "policies": [{"type": "Percent", "value": 10, "periodSeconds": 120}]}}


def test_without_a_goal_nothing_is_changed():
    for name in ("hpa-external-only", "keda-kafka", "keda-modifiers"):
        mpa, said = convert(f"{name}.yaml")
        assert mpa["spec"]["policy"] == {"updateMode": "Off"}
        assert mpa["spec"]["goals"] == {"metrics": [metric("cpu", 70)]}
        assert "nothing of what was held can be a goal" in said
        mpa, said = convert(f"{name}.yaml", options=["--latency=1.5s", "--percentile=99.9"])
        assert mpa["spec"]["policy"] == {"updateMode": "Auto"}
        assert mpa["spec"]["goals"] == {"latency": {"percentile": 99.9, "target": "1.5s"}}
        assert mpa["spec"]["recommenders"] == [{"name": "threshold"}]


@pytest.mark.parametrize("name, mode, told", [
    ("vpa-auto", "Auto", None), ("vpa-off", "Off", None), ("vpa-initial", "Initial", None),
    ("vpa-recreate", "Auto", "never evicted"), ("vpa-boost", "Auto", "not evicted"), ("vpa-mixed-resources", "Auto", None),
])
def test_vpa_modes(name, mode, told):
    mpa, said = convert(f"{name}.yaml")
    assert mpa["spec"]["policy"]["updateMode"] == mode
    assert ("updateMode" in said) == (told is not None) and (told or "") in said
    assert mpa["spec"]["recommenders"] == [{"name": "vpa"}]
    assert mpa["spec"]["constraints"]["global"]["behavior"] == {
        "scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}
    fixed = convert(f"{name}.yaml", options=["--replicas", "4"])[0]
    assert fixed["spec"]["constraints"]["global"] == {"minReplicas": 4, "maxReplicas": 4}


def test_vpa_containers():
    bounds = convert("vpa-auto.yaml")[0]["spec"]["constraints"]
    assert bounds["containerControlledResources"] == ["cpu"]
    assert bounds["container"] == [
        {"name": "application", "controlledValues": "RequestsOnly",
         "requests": {"minAllowed": {"cpu": "100m", "memory": "128Mi"}, "maxAllowed": {"cpu": "2", "memory": "2Gi"}}},
        {"name": "*", "mode": "Off"}]
    assert convert("vpa-initial.yaml")[0]["spec"]["constraints"]["containerControlledResources"] == ["cpu", "memory"]
    mpa, said = convert("vpa-mixed-resources.yaml")
    assert mpa["spec"]["constraints"]["containerControlledResources"] == ["cpu"] and "all of them" in said
    assert convert("vpa-boost.yaml")[0]["spec"]["policy"]["startupBoost"] == {
        "cpu": {"type": "Factor", "factor": 3, "durationSeconds": 10}}
    said = convert("vpa-recreate.yaml")[1]
    for field in ("spec.recommenders", "spec.updatePolicy.minReplicas", "spec.updatePolicy.evictionRequirements",
                  "spec.resourcePolicy.containerPolicies[0].minAllowed.ephemeral-storage"):
        assert f": {field}: " in said


def test_scaled_object():
    mpa, said = convert("keda-prometheus.yaml")
    assert mpa["spec"]["constraints"]["global"] == {
        "minReplicas": 2, "maxReplicas": 50,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 120,
                                   "policies": [{"type": "Percent", "value": 50, "periodSeconds": 30}]}}}
    for field in ("spec.pollingInterval", "spec.cooldownPeriod", "spec.fallback", "spec.triggers[0]",
                  "spec.advanced.restoreToOriginalReplicaCount", "spec.advanced.horizontalPodAutoscalerConfig.name",
                  "spec.scaleTargetRef.envSourceContainerName"):
        assert f": {field}: " in said
    office, said = convert("keda-cron-zero.yaml")
    assert office["spec"]["constraints"]["global"] == {"minReplicas": 1, "maxReplicas": 100}
    assert office["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "office"}
    assert "does not scale to zero" in said


def test_what_v1_has_in_annotations():
    """The API server puts there what autoscaling/v1 has no field for; what is status of it is not told."""
    mpa, said = convert("hpa-v1-from-server.yaml")
    assert "annotations" not in mpa["metadata"] and mpa["spec"]["goals"] == {"metrics": [metric("cpu", 60)]}
    assert "autoscaling.alpha.kubernetes.io/metrics: is not read: left out; as autoscaling/v2" in said
    assert "autoscaling.alpha.kubernetes.io/behavior: " in said and "conditions" not in said


def test_a_type_that_does_not_decide_is_told():
    text = KEDA + "  triggers:\n  - {type: cpu, metricType: AverageValue, metadata: {type: Utilization, value: '5'}}\n"
    out, said = run("-f", "-", stdin=text)
    assert yaml.safe_load(out)["spec"]["goals"]["metrics"] == [metric("cpu", "5", "AverageValue")]
    assert "-:7: spec.triggers[0].metadata.type: has no counterpart" in said


def test_annotations_of_keda():
    """Those that are not known are told, and so are those of an object that is not KEDA's."""
    held = "annotations: {autoscaling.keda.sh/paused-soon: 'true'}"
    said = run("-f", "-", stdin=KEDA.replace("name: x}", "name: x, " + held + "}", 1) + "  triggers:\n  - {type: cpu, metadata: {value: '5'}}\n")[1]
    assert "-:3: metadata.annotations.autoscaling.keda.sh/paused-soon: has no counterpart" in said
    said = run("-f", "-", stdin=HEAD.replace("name: x", "name: x, " + held.replace("-soon", "")) + f"spec:\n  {TARGET}\n  maxReplicas: 3\n")[1]
    assert "-:3: metadata.annotations.autoscaling.keda.sh/paused: has no counterpart" in said


def test_what_was_held_stays_held():
    mpa, said = convert("keda-paused.yaml")
    assert mpa["metadata"]["annotations"] == {"autoscaling.faasrl.io/paused": "true"}
    assert mpa["spec"]["constraints"]["global"]["behavior"] == {"scaleDown": {"selectPolicy": "Disabled"}}
    assert mpa["spec"]["scaleTargetRef"]["kind"] == "Rollout"
    assert "transfer-hpa-ownership" in said


@pytest.mark.parametrize("names", [["hpa-cpu.yaml", "vpa-auto.yaml"], ["vpa-auto.yaml", "hpa-cpu.yaml"]])
def test_autoscalers_of_one_target_become_one(names):
    mpa, said = convert(*names)
    assert mpa["metadata"]["name"] == "checkout"  # the HPA's
    assert mpa["spec"]["constraints"]["global"] == {"minReplicas": 2, "maxReplicas": 20}
    assert mpa["spec"]["constraints"]["containerControlledResources"] == ["cpu"]
    assert len(mpa["spec"]["constraints"]["container"]) == 2
    assert mpa["spec"]["recommenders"] == [{"name": "threshold"}] and said == ""


def test_a_vpa_that_only_looks_leaves_the_hpa_at_work():
    vpa = (DATA / "vpa-auto.yaml").read_text().replace("updateMode: Auto", 'updateMode: "Off"')
    out, said = run("-f", "hpa-cpu.yaml", "-f", "-", stdin=vpa)
    mpa = yaml.safe_load(out)
    assert mpa["spec"]["policy"]["updateMode"] == "Auto"
    assert mpa["spec"]["constraints"]["containerControlledResources"] == []
    assert "the VPA is in mode Off" in said


def test_two_of_a_kind():
    other = (DATA / "hpa-cpu.yaml").read_text().replace("maxReplicas: 20", "maxReplicas: 30").replace("65", "80")
    out, said = run("-f", "hpa-cpu.yaml", "-f", "-", stdin=other)
    mpa = yaml.safe_load(out)
    assert mpa["spec"]["constraints"]["global"] == {"minReplicas": 2, "maxReplicas": 20}
    assert mpa["spec"]["goals"]["metrics"] == [metric("cpu", 65), metric("cpu", 80)]
    assert "-:17: spec.maxReplicas: another autoscaler of the target has the bounds 2 to 20" in said


def test_targets_of_several_namespaces_stay_apart():
    text = (DATA / "hpa-v1.yaml").read_text()
    out, _ = run("-f", "-", stdin=f"{text}---\n{text.replace('name: old', 'name: old' + chr(10) + '  namespace: b', 1)}")
    assert [m["metadata"].get("namespace") for m in yaml.safe_load_all(out)] == [None, "b"]


def test_lists_and_what_is_made_by_others():
    mpa, said = convert("hpa-from-server.yaml")
    assert mpa["metadata"] == {"name": "one", "namespace": "team"}
    assert "keda-hpa-two skipped" in said and "hpa-from-server.yaml:12: metadata.finalizers[0]" in said


HEAD = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"
TARGET = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}"
KEDA = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: x}\nspec:\n  scaleTargetRef: {name: x}\n"
VPA = ("apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: x}\nspec:\n"
       "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: x}\n")


@pytest.mark.parametrize("text, said", [
    ("a: [", "-: line 2 column 1"),
    ("kind: Service\nmetadata: {name: s}\n", "there is no HorizontalPodAutoscaler"),
    (HEAD, "-:1: HorizontalPodAutoscaler x: spec: must be given"),
    (HEAD.replace("v2", "v2beta1"), "-:1: HorizontalPodAutoscaler x: apiVersion: \"autoscaling/v2beta1\" is not known"),
    (HEAD.replace("name: x", "labels: {}") + "spec: {}", "metadata.name: must be given"),
    (HEAD + "spec:\n  maxReplicas: 3\n", "-:4: HorizontalPodAutoscaler x: spec.scaleTargetRef: must name the kind"),
    (HEAD + f"spec:\n  {TARGET}\n", "spec.maxReplicas: must be given"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: many\n", "-:6: HorizontalPodAutoscaler x: spec.maxReplicas: must be a whole"),
    (HEAD + f"spec:\n  {TARGET}\n  minReplicas: 5\n  maxReplicas: 3\n", "-:6: HorizontalPodAutoscaler x: spec.minReplicas"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: 3\n  metrics: {{}}\n", "-:7: HorizontalPodAutoscaler x: spec.metrics: must be a list"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: 3\n  metrics:\n  - type: Cpu\n", "-:8: HorizontalPodAutoscaler x: spec.metrics[0].type"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: 20000\n", "would not be valid: spec.constraints.global.maxReplicas"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: 3\n  targetCPUUtilizationPercentage: 0\n",
     "-:7: HorizontalPodAutoscaler x: spec.targetCPUUtilizationPercentage: must be at least 1"),
    (HEAD + f"spec:\n  {TARGET}\n  maxReplicas: 3\n  behavior: {{scaleUp: {{policies: fast}}}}\n",
     "would not be valid: spec.constraints.global.behavior.scaleUp.policies"),
    (HEAD.replace("name: x", "name: x, namespace: 42") + f"spec:\n  {TARGET}\n  maxReplicas: 3\n",
     "-:3: HorizontalPodAutoscaler x: metadata.namespace: must be text"),
    (HEAD.replace("name: x", "name: x, labels: {team: 7}") + f"spec:\n  {TARGET}\n  maxReplicas: 3\n",
     "-:3: HorizontalPodAutoscaler x: metadata.labels.team: must be text"),
    (HEAD.replace("name: x", "name: x, annotations: none") + f"spec:\n  {TARGET}\n  maxReplicas: 3\n",
     "-:3: HorizontalPodAutoscaler x: metadata.annotations: must be a mapping"),
    (KEDA + "  triggers: []\n", "-:6: ScaledObject x: spec.triggers: must have one"),
    (KEDA + "  triggers:\n  - metadata: {}\n", "spec.triggers[0]: type must name"),
    (KEDA + "  triggers:\n  - {type: cpu, metadata: {value: most}}\n", "-:7: ScaledObject x: spec.triggers[0]: metadata.value"),
    (KEDA + "  triggers:\n  - {type: cpu, metricType: 5, metadata: {value: '5'}}\n", "spec.triggers[0].metricType: must be text"),
    (VPA + "  resourcePolicy: {containerPolicies: [{containerName: a, controlledResources: memory}]}\n",
     "controlledResources: must be a list"),
    (VPA + "  updatePolicy: {updateMode: Sometimes}\n", "-:6: VerticalPodAutoscaler x: spec.updatePolicy.updateMode: must be Off"),
    (VPA + "  resourcePolicy: {containerPolicies: [{mode: Auto}]}\n", "containerName must name"),
    (VPA + "---\n" + VPA, "another VerticalPodAutoscaler has this target"),
    (VPA + "  resourcePolicy: {containerPolicies: [{containerName: a, maxAllowed: {cpu: lots}}]}\n",
     "would not be valid: spec.constraints.container[0].requests.maxAllowed.cpu"),
])
def test_what_is_wrong_is_named(text, said):
    out, errors = run("-f", "-", code=1, stdin=text)
    assert said in errors and out == ""


@pytest.mark.parametrize("argv, said", [
    ([], "no file"), (["hpa.yaml"], "name files with -f"), (["-f", "x", "--latency", "soon"], "--latency"),
    (["-f", "x", "--percentile", "100"], "--percentile"), (["-f", "x", "--replicas", "1.5"], "whole number"),
])
def test_wrong_usage(argv, said):
    assert said in run(*argv, code=2)[1]


def test_a_file_that_is_not_there():
    assert "/nowhere" in run("-f", "/nowhere", code=1)[1]
