"""The chart: what it renders, what it refuses, and the controller as pods from it, from install to uninstall."""
import contextlib
import copy
import json
import os
import re
import shutil
import signal
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from harness import (Audit, EXAMPLE, Load, OUT, ROOT, apply, call_of, cluster, condition_is, cpu_requests,
                     deploy_function, function_url, get, install_crds, kubectl, listing, local_port, mpa,
                     pods, replicas, restarts, run, token, wait)
from test_metrics import page
from test_modes import crd

CHART = ROOT / "charts/faasrl-mpa"
ALL = Path(__file__).with_name("chart_all.yaml")
CRD = "multidimpodautoscalers.autoscaling.faasrl.io"
SYSTEM = "chart-system"
RELEASE, FULL = "chart", "chart-faasrl-mpa"  # other names than those of deploy/rbac.yaml, which is there too
ACCOUNT = f"system:serviceaccount:{SYSTEM}:{FULL}"
# Seconds-scale as harness.FAST; Prometheus as pods of this cluster reach it.
FAST = ["--set", "prometheus.url=http://203.0.113.1:19090,prometheus.timeout=2s,interval=3s,window=10s,"
        "statusInterval=3s,history=0s,resize.cooldown=5s,log.level=debug"]
LEASE_S, RETRY_S = 15, 2.4
REFUSAL = re.compile(r"cannot \w+ resource")  # by RBAC; a namespace that is being deleted refuses in other words
MINIMUM_MPA = EXAMPLE.replace("minReplicas: 1", "minReplicas: 2").replace("cpu: 100m", "cpu: 300m")


def helm(*argv, check=True):
    return run("helm", *argv, check=check)


def render(*argv, namespace="default", release=RELEASE):
    text = helm("template", release, CHART, "--kube-version=1.34", "-n", namespace, *argv).stdout
    return [d for d in yaml.safe_load_all(text) if d]


def of_kind(objects, kind):
    return [o for o in objects if o["kind"] == kind]


def pod_of(*argv):
    return of_kind(render(*argv), "Deployment")[0]["spec"]["template"]["spec"]


def leaves(values, path=""):
    """Where the values are: a.b.c of everything that is no map, or an empty one."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield path + key, value


def at(values, path):
    for key in path.split("."):
        values = values[key]
    return values


DEFAULTS = dict(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))


# --- without a cluster --------------------------------------------------------------------------
def test_lint_finds_nothing():
    said = helm("lint", "--strict", CHART).stdout
    assert "[WARNING]" not in said and "[ERROR]" not in said, said
    assert helm("lint", "--strict", CHART, "-f", ALL).returncode == 0


def test_versions_are_one():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r"^VERSION \?= (\S+)$", (ROOT / "Makefile").read_text(), re.M)[1]
    assert chart["version"] == chart["appVersion"] == version


def test_every_value_is_documented_and_covered():
    text = (ROOT / "docs/install.md").read_text()
    missing = [path for path in DEFAULTS if f"| `{path}` |" not in text]
    assert not missing, "not in the table of docs/install.md"
    for path, value in DEFAULTS.items():
        row = re.search(rf"^\| `{re.escape(path)}` \| (.*?) \|", text, re.M)[1]
        assert row == f"`{json.dumps(value) if not isinstance(value, str) or not value else value}`", path
    every = yaml.safe_load(ALL.read_text())
    same = [path for path, value in DEFAULTS.items() if at(every, path) == value]
    assert same == ["prometheus.tls.ca.configMapName"], "it excludes secretName; chart_all.yaml lacks the others"


def test_every_option_of_the_controller_can_be_set():
    """By a value of its own; the rest is the chart's to set or makes no sense in a pod."""
    table = (ROOT / "cmd/faasrl-mpa/options.c").read_text()
    options = set(re.findall(r'^    \{"([a-z-]+)", [A-Z_]+, AT', table, re.M))
    assert len(options) > 30
    args = {re.match(r"--([a-z-]+)", a)[1] for auth in ("basic", "bearer") for a in pod_of(
        "-f", ALL, "--set", f"metrics.service.enabled=true,prometheus.auth.type={auth}")["containers"][0]["args"]}
    assert options - args == {"kubeconfig", "context", "leader-elect", "identity", "version", "help",
                              "simulate", "simulate-duration", "simulate-speed", "simulate-seed", "simulate-stay"}
    assert args <= options


def rights(objects):
    return sorted((o["kind"], g, r, v, n) for o in objects if o["kind"] in ("ClusterRole", "Role")
                  for rule in o["rules"] for g in rule["apiGroups"] for r in rule["resources"]
                  for v in rule["verbs"] for n in rule.get("resourceNames", [""]))


def test_the_role_for_knative_is_that_of_the_plain_manifest():
    plain = list(yaml.safe_load_all((ROOT / "deploy/rbac-knative.yaml").read_text()))
    assert sorted(set(rights(render("--set", "rbac.knative=true"))) - set(rights(render()))) == rights(plain)
    scoped = render("--set", "rbac.knative=true,rbac.scope=namespaced,watchNamespaces={a}")
    assert [o["rules"] for o in of_kind(scoped, "Role") if o["metadata"]["namespace"] == "knative-serving"] == [
        [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["config-autoscaler"], "verbs": ["get"]},
         {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]]


def test_the_role_is_that_of_the_plain_manifest():
    plain = list(yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()))
    assert rights(render(release="faasrl-mpa")) == rights(plain) and len(rights(plain)) > 20
    scoped = render("--set", "rbac.scope=namespaced,watchNamespaces={a,b}")
    assert not of_kind(scoped, "ClusterRole") and not of_kind(scoped, "ClusterRoleBinding")
    assert sorted(o["metadata"]["namespace"] for o in of_kind(scoped, "Role")) == ["a", "b", "default"]


def test_the_dashboard_has_its_rights_only_where_it_is_served():
    def told(*argv):
        objects = render(*argv)
        reviews = {r for _, _, r, _, _ in rights(objects) if r.endswith("reviews")}
        args = of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["args"]
        return reviews, [a for a in args if a.startswith("--dashboard=")]
    assert told() == ({"tokenreviews", "subjectaccessreviews"}, ["--dashboard=kubernetes"])
    assert told("--set", "dashboard.enabled=false") == (set(), ["--dashboard=off"])
    assert told("--set", "rbac.scope=namespaced,watchNamespaces={a}") == (set(), ["--dashboard=off"])


def test_the_resource_is_that_of_crds():
    rendered = of_kind(render(), "CustomResourceDefinition")[0]
    assert rendered["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert rendered == yaml.safe_load((ROOT / "crds/multidimpodautoscalers.yaml").read_text())


def test_credentials_are_read_where_they_are_mounted():
    for kind, files in (("basic", {"u": "user-file", "p": "password-file"}), ("bearer", {"t": "token-file"})):
        spec = pod_of("-f", ALL, "--set", f"metrics.service.enabled=true,prometheus.auth.type={kind}")
        mounted = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
        found = {i["key"]: f"{mounted[v['name']]}/{i['path']}" for v in spec["volumes"] if "emptyDir" not in v
                 for i in v.get("secret", v.get("configMap"))["items"]}
        wanted = {**files, "authority.pem": "ca-file", "c": "cert-file", "k": "key-file"}
        assert set(found) == set(wanted)
        for key, option in wanted.items():
            assert f"--prometheus-{option}={found[key]}" in spec["containers"][0]["args"]


def test_the_journal_is_written_where_there_is_room_for_it():
    spec = pod_of("-f", ALL, "--set", "metrics.service.enabled=true")
    mounted = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    volume = next(v for v in spec["volumes"] if v["name"] == "journal")
    assert f"--journal={mounted['journal']}/journal" in spec["containers"][0]["args"]
    assert "--journal-max=8" in spec["containers"][0]["args"] and volume["emptyDir"] == {"sizeLimit": "32Mi"}
    assert not any("journal" in a for a in pod_of()["containers"][0]["args"])


def test_queries_reach_the_controller_as_written():
    args = pod_of("-f", ALL, "--set", "metrics.service.enabled=true")["containers"][0]["args"]
    as_kubernetes_passes_it = [a.replace("$$", "$") for a in args]
    queries = yaml.safe_load(ALL.read_text())["queries"]
    assert f"--own-queries={queries.pop('own')}" in args
    for name, text in queries.items():
        assert f"--query-{name}={text}" in as_kubernetes_passes_it


REFUSED = [
    ("replicaCount=0", "/replicaCount"),
    ("replicaCount=two", "/replicaCount"),
    ("interval=15", "/interval"),
    ("interval=0s", "/interval"),
    ("window=1 minute", "/window"),
    ("prometheus.url=prometheus:9090", "/prometheus/url"),
    ("prometheus.url=http://user:secret@prometheus:9090", "/prometheus/url"),
    ("prometheus.token=abc", "/prometheus"),
    ("prometheus.auth.type=digest", "/prometheus/auth/type"),
    ("defaultCpuUtilization=0", "/defaultCpuUtilization"),
    ("resize.upFactor=0.5", "/resize/upFactor"),
    ("resize.downFactor=1", "/resize/downFactor"),
    ("resize.threshold=2", "/resize/threshold"),
    ("writes.perSecond=0", "/writes/perSecond"),
    ("log.level=verbose", "/log/level"),
    ("log.format=text", "/log/format"),
    ("watchNamespaces={Upper}", "/watchNamespaces/0"),
    ("watchNamespaces=a", "/watchNamespaces"),
    ("rbac.scope=namespace", "/rbac/scope"),
    ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
    ("image.tag=a:b", "/image/tag"),
    ("metrics.port=80", "/metrics/port"),
    ("networkPolicy.apiServer.cidrs={10.0.0.1}", "/networkPolicy/apiServer/cidrs/0"),
    ("podSecurityContext.runAsUser=0", "/podSecurityContext/runAsUser"),
    ("podDisruptionBudget.maxUnavailable=half", "/podDisruptionBudget/maxUnavailable"),
    ("resources.limits.memory=lots", "/resources/limits/memory"),
    ("extraArgs={interval=3s}", "/extraArgs/0"),
    ("prometheusRule.alerts.goalMissed.for=long", "/prometheusRule/alerts/goalMissed/for"),
    ("prometheusRule.alerts.apiErrors.ratio=5", "/prometheusRule/alerts/apiErrors/ratio"),
    ("prometheusRule.disabled={Down}", "/prometheusRule/disabled/0"),
    ("grafanaDashboard.labels.a=1", "/grafanaDashboard/labels/a"),
    ("dashboard.enabled=yes please", "/dashboard/enabled"),
    ("replicas=2", "additional properties 'replicas' not allowed"),
    ("rbac.scope=namespaced", "watchNamespaces must name the namespaces"),
    ("prometheus.auth.type=bearer", "prometheus.auth.secretName must name a Secret"),
    ("serviceAccount.create=false", "serviceAccount.name must name an account"),
    ("prometheus.tls.ca.secretName=a,prometheus.tls.ca.configMapName=b", "not both"),
]


@pytest.mark.parametrize("setting,named", REFUSED, ids=[r[0] for r in REFUSED])
def test_wrong_values_are_refused_by_name(setting, named):
    refused = helm("template", "x", CHART, "--kube-version=1.34", "--set", setting, check=False)
    assert refused.returncode != 0
    assert f"at '{named}'" in refused.stderr or named in refused.stderr, refused.stderr


# --- against the API server -----------------------------------------------------------------------
def install_operators_resource(kind, plural, spec):
    """The part of a resource of the Prometheus operator that the chart uses, strict about the rest."""
    made = json.loads(crd("monitoring.coreos.com", "v1", kind, plural))
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    kubectl("wait", "--for=condition=Established", f"crd/{plural}.monitoring.coreos.com", "--timeout=30s")


def objects_with(properties):
    return {"type": "array", "items": {"type": "object", "properties": properties}}


@pytest.fixture(scope="module")
def operators_resources():
    text = {"type": "string"}
    texts = {"type": "object", "additionalProperties": text}
    install_operators_resource("ServiceMonitor", "servicemonitors", {
        "selector": {"type": "object", "properties": {"matchLabels": texts}},
        "namespaceSelector": {"type": "object", "properties": {"matchNames": {"type": "array", "items": text}}},
        "endpoints": objects_with({**{name: text for name in ("port", "path", "interval", "scrapeTimeout")},
                                   "honorLabels": {"type": "boolean"}})})
    install_operators_resource("PrometheusRule", "prometheusrules", {"groups": objects_with({
        "name": text, "rules": objects_with({"alert": text, "expr": text, "for": text, "labels": texts,
                                             "annotations": texts})})})
    yield
    kubectl("delete", "crd", "servicemonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com")


ON = "metrics.service.enabled=true,podDisruptionBudget.enabled=true,rbac.create=true,serviceAccount.create=true," \
     "prometheusRule.namespace=,grafanaDashboard.namespace="  # such as are there


@pytest.mark.parametrize("values", [
    [],
    ["-f", str(ALL), "--set", f"{ON},crds.install=true,rbac.scope=cluster"],
    ["-f", str(ALL), "--set", f"{ON},prometheus.auth.type=bearer,prometheus.tls.ca.secretName=,"
                              "prometheus.tls.ca.configMapName=ca,watchNamespaces={NAMESPACE}"],
], ids=["default", "all on", "namespaced"])
def test_the_api_server_takes_what_is_rendered(values, namespace, operators_resources):
    """In a namespace with restricted pod security; a field it does not know is an error."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    objects = render(*[v.replace("NAMESPACE", namespace) for v in values], namespace=namespace)
    kinds = {o["kind"] for o in objects}
    assert {"Deployment", "ServiceAccount", "Role", "Service", "PodDisruptionBudget"} <= kinds
    if values:
        assert {"NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConfigMap"} <= kinds
    said = kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-",
                   stdin=yaml.safe_dump_all(objects))
    assert len(said.stdout.splitlines()) == len(objects)
    assert "Warning" not in said.stderr, said.stderr


# --- as pods ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def image(real_pods):
    cluster("load-image", ROOT / "build/faasrl-mpa.tar")


def make_namespace(name, *labels):
    kubectl("delete", "namespace", name, "--ignore-not-found")
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "faasrl-e2e=true", *labels)


def controllers(namespace):
    return [p for p in listing("pods", namespace, "-l", "app.kubernetes.io/name=faasrl-mpa")
            if "deletionTimestamp" not in p["metadata"]]


def ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def logs(namespace):
    return kubectl("logs", "-n", namespace, "-l", "app.kubernetes.io/name=faasrl-mpa", "--tail=-1").stdout


def is_sized(namespace, count, cpu):
    return replicas(namespace) == count and cpu_requests(namespace) == [cpu] * count


def test_without_cluster_wide_rights(namespace, image):
    """A Role in one namespace is enough for what happens there, and the rest is not seen. Comes before
    the other release, which follows all namespaces."""
    system, other = f"{namespace}-system", f"{namespace}-other"
    make_namespace(system, "pod-security.kubernetes.io/enforce=restricted")
    make_namespace(other)
    for ns in (namespace, other):
        deploy_function(ns)
        apply(MINIMUM_MPA, ns)
    kubectl("create", "secret", "generic", "prometheus", "-n", system, "--from-literal=pass=x")
    kubectl("create", "configmap", "ca", "-n", system, "--from-file=bundle=/etc/ssl/certs/ca-certificates.crt")
    helm("install", "scoped", CHART, "-n", system, "--wait", "--timeout=60s", *FAST, "--set",
         f"rbac.scope=namespaced,watchNamespaces={{{namespace}}},crds.install=false,replicaCount=1,"
         # Unread files of these would leave it without figures.
         "prometheus.auth.type=bearer,prometheus.auth.secretName=prometheus,prometheus.auth.tokenKey=pass,"
         "prometheus.tls.ca.configMapName=ca,prometheus.tls.ca.key=bundle")
    try:
        manifest = list(yaml.safe_load_all(helm("get", "manifest", "scoped", "-n", system).stdout))
        assert not [o for o in manifest if o["kind"].startswith("Cluster")]
        account = f"system:serviceaccount:{system}:scoped-faasrl-mpa"
        for verb, what in (("list", "pods"), ("list", "mpa"), ("patch", "pods/resize"), ("list", "nodes")):
            for scope in (["-A"], ["-n", other]):
                answer = kubectl("auth", "can-i", verb, what, "--as", account, *scope, check=False)
                assert answer.stdout.strip() == "no", (verb, what, scope)
        wait("the goal is followed", lambda: is_sized(namespace, 2, 300), 60)
        time.sleep(4)
        assert is_sized(other, 1, 200) and "status" not in mpa(other)
        assert not REFUSAL.search(logs(system))
    finally:
        helm("uninstall", "scoped", "-n", system, "--wait")
        kubectl("delete", "namespace", other, system, "--wait=false")


@pytest.fixture(scope="module")
def release(image):
    """Two replicas from the chart, which follow all namespaces."""
    make_namespace(SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
    # The resource is there already, from kubectl.
    helm("install", RELEASE, CHART, "-n", SYSTEM, "--take-ownership", "--wait", "--timeout=90s", *FAST)
    yield
    helm("uninstall", RELEASE, "-n", SYSTEM, "--ignore-not-found", "--wait")
    kubectl("delete", "namespace", SYSTEM, "--wait=false")
    install_crds()


def holder():
    return get("lease", FULL, SYSTEM)["spec"]["holderIdentity"]


def leader():
    """The pod that leads; its name begins its identity."""
    return wait("one leads", lambda: [p for p in controllers(SYSTEM)
                                      if holder().startswith(p["metadata"]["name"] + "_")], 30)[0]


def test_the_flow_from_pods(namespace, release):
    deploy_function(namespace)
    uids = {p["metadata"]["uid"] for p in pods(namespace)}
    assert len(controllers(SYSTEM)) == 2 and all(map(ready, controllers(SYSTEM)))
    led_by = leader()["metadata"]["name"]
    audit = Audit(ACCOUNT)
    apply(EXAMPLE, namespace)
    wait("the MPA is ready", lambda: condition_is(namespace, "Ready", "True"), 30)
    busy = call_of(12, function_url(namespace, ""))
    with Load(function_url(namespace, busy), "2@3s,2-45@10s,45@120s"):
        wait("CPU grows in place to its maximum", lambda: max(cpu_requests(namespace)) == 400, 90)
        wait("replicas grow when CPU is at its maximum", lambda: replicas(namespace) >= 2, 60)
        assert uids <= {p["metadata"]["uid"] for p in pods(namespace)}
    assert restarts(namespace) == 0
    assert {"deployments/scale", "pods/resize", "multidimpodautoscalers/status", "events"} == {
        what for _, what in audit.writes(namespace)}
    assert {writer(e) for e in audit.entries()} == {led_by}
    assert not REFUSAL.search(logs(SYSTEM))


def test_it_is_confined(release):
    """By a filter of its own: the runtime's, where it sets one, is beside it."""
    for pod in controllers(SYSTEM):
        found = list(processes_of(pod))
        assert len(found) == 1, found
        for task in (found[0] / "task").iterdir():
            status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", status
    said = logs(SYSTEM)
    assert len(re.findall(r"msg=confined", said)) >= 2 and "not confined" not in said


def test_the_dashboard_behind_a_forwarded_port(namespace, release):
    """As docs/dashboard.md says: of the pod that leads, by one whose account may list MPAs in a namespace."""
    apply(EXAMPLE, namespace)
    kubectl("create", "role", "reader", "-n", namespace, "--verb=list", f"--resource={CRD}")
    kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", f"--serviceaccount={namespace}:default")
    bearer = token("default", namespace).strip()
    with local_port("port-forward", "-n", SYSTEM, f"pod/{leader()['metadata']['name']}", ":8080") as port:
        status, headers, text = page("/", port)
        assert status == 200 and "Content-Security-Policy" in headers and "</html>" in text
        assert page(f"/api/v1/mpas?namespace={namespace}", port)[0] == 401
        assert page("/api/v1/mpas", port, bearer=bearer)[0] == 403
        status, _, text = page(f"/api/v1/about?namespace={namespace}", port, bearer=bearer)
        assert status == 200 and json.loads(text)["leading"]
        wait("the MPA is listed", lambda: [row["name"] for row in json.loads(page(
            f"/api/v1/mpas?namespace={namespace}", port, bearer=bearer)[2]).get("items", [])] == ["primes"], 20)


def writer(entry):
    """The pod whose token a write in the audit log bore."""
    return entry["user"]["extra"]["authentication.kubernetes.io/pod-name"][0]


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def processes_of(pod):
    """The directories in /proc of this pod's controllers, and of nothing else."""
    uid = pod["metadata"]["uid"]
    for process in Path("/proc").iterdir():
        try:
            groups = (process / "cgroup").read_text() if process.name.isdigit() else ""
            if (uid in groups or uid.replace("-", "_") in groups) and (
                    process / "comm").read_text().strip() == "faasrl-mpa":
                yield process
        except (FileNotFoundError, ProcessLookupError):
            pass


def kill_controller(pod):
    """SIGKILL to the controller of this pod."""
    for process in processes_of(pod):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)
            return True
    return False


def test_the_other_replica_takes_over(namespace, release):
    deploy_function(namespace)
    apply(EXAMPLE.replace("cpu: 100m", "cpu: 200m"), namespace)
    with Load(function_url(namespace, "/sentiment?n=100"), "5@100s"):
        audit = Audit(ACCOUNT)
        old = leader()
        name = old["metadata"]["name"]
        wait("it writes status", lambda: audit.entries(namespace), 30)
        killed = datetime.now(timezone.utc)
        assert kill_controller(old)
        # Its node is broken: what Kubernetes starts again there ends at once, and the other must do.
        wait("another leads", lambda: (kill_controller(old), not holder().startswith(name + "_"))[1], 40, every=0.2)
        taken = moment(get("lease", FULL, SYSTEM)["spec"]["acquireTime"])
        new = leader()["metadata"]["name"]
        assert new != name
        wait("the new leader writes", lambda: [e for e in audit.entries(namespace) if writer(e) == new], 30)
    seconds = (taken - killed).total_seconds()
    wrote = {who: [moment(e["requestReceivedTimestamp"]) for e in audit.entries() if writer(e) == who]
             for who in (name, new)}
    assert wrote[name] and max(wrote[name]) <= killed, "the old one wrote after its death"
    assert min(wrote[new]) >= taken, "the new one wrote before it led"
    assert seconds <= LEASE_S + 2 * RETRY_S + 1, seconds
    (OUT / "takeover.txt").write_text(f"{seconds:.1f} s from SIGKILL to the new lease\n")


def newer_chart(directory):
    """This chart with one more column in the resource, as a later version may have."""
    chart = directory / "chart"
    shutil.copytree(CHART, chart)
    path = chart / "files/crds/multidimpodautoscalers.yaml"
    resource = yaml.safe_load(path.read_text())
    column = copy.deepcopy(resource["spec"]["versions"][0]["additionalPrinterColumns"][0])
    resource["spec"]["versions"][0]["additionalPrinterColumns"].append({**column, "name": "Later"})
    path.write_text(yaml.safe_dump(resource, sort_keys=False))
    return chart


def test_upgrade_and_uninstall(namespace, release, tmp_path):
    deploy_function(namespace)
    apply(MINIMUM_MPA, namespace)
    wait("the goal is followed", lambda: is_sized(namespace, 2, 300), 60)
    before = (get("crd", CRD, SYSTEM)["metadata"]["uid"], mpa(namespace)["metadata"]["uid"])
    old = {p["metadata"]["name"] for p in controllers(SYSTEM)}

    helm("upgrade", RELEASE, newer_chart(tmp_path), "-n", SYSTEM, "--reset-then-reuse-values",
         "--set", "log.format=json", "--wait", "--timeout=90s")
    assert (get("crd", CRD, SYSTEM)["metadata"]["uid"], mpa(namespace)["metadata"]["uid"]) == before
    assert "LATER" in kubectl("get", "mpa", "-n", namespace).stdout
    assert not old & {p["metadata"]["name"] for p in controllers(SYSTEM)}
    assert "msg" in json.loads(logs(SYSTEM).splitlines()[0])
    kubectl("patch", "mpa", "primes", "-n", namespace, "--type=merge", "-p", json.dumps({"spec": {"constraints": {
        "container": [{"name": "function", "requests": {"minAllowed": {"cpu": "350m"},
                                                        "maxAllowed": {"cpu": "400m"}}}]}}}))
    wait("the new pods act", lambda: is_sized(namespace, 2, 350), 60)

    said = helm("uninstall", RELEASE, "-n", SYSTEM, "--wait").stdout
    assert CRD in said, "says what it keeps"
    time.sleep(5)
    assert is_sized(namespace, 2, 350) and restarts(namespace) == 0
    assert (get("crd", CRD, SYSTEM)["metadata"]["uid"], mpa(namespace)["metadata"]["uid"]) == before
    left = kubectl("get", "clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,deployment,service,pdb",
                   "-n", SYSTEM, "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name").stdout
    assert left == ""
    # And it can be installed again over what it left.
    helm("install", RELEASE, CHART, "-n", SYSTEM, "--dry-run=server", *FAST)
