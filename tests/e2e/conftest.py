import pytest

import harness


@pytest.fixture(scope="session", autouse=True)
def installed():
    """The resource and the controller's account are there, as a user would install them."""
    harness.OUT.mkdir(parents=True, exist_ok=True)
    assert harness.KUBECONFIG.exists(), "no cluster: make cluster-up"
    harness.install_crds()
    harness.kubectl("apply", "-f", harness.ROOT / "deploy/rbac.yaml")
    harness.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                    "crd/multidimpodautoscalers.autoscaling.faasrl.io")
    # Leftovers of a run that was ended; queue-proxies of Knative take minutes to drain.
    harness.run("kubectl", "delete", "ns", "-l", "faasrl-e2e=true", "--ignore-not-found", timeout=400)
    harness.kubectl("delete", "lease", "--all", "-n", "faasrl-mpa")


@pytest.fixture(scope="session")
def real_pods(installed):
    if not harness.has_real_node():
        pytest.skip("needs real pods, and this cluster has only kwok nodes (it was started without root)")
    harness.cluster("load-image", harness.BUILD / "function.tar")


@pytest.fixture(scope="session")
def with_knative(real_pods):
    """Knative is there, and our rights to it; where it has to be built first that takes minutes."""
    harness.cluster("knative", timeout=1800)
    harness.kubectl("apply", "-f", harness.ROOT / "deploy/rbac-knative.yaml")


@pytest.fixture
def namespace(installed):
    with harness.new_namespace() as name:
        yield name
