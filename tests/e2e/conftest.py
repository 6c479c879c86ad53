import itertools

import pytest

import harness

counter = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def installed():
    """The resource and the controller's account are there, as a user would install them."""
    harness.OUT.mkdir(parents=True, exist_ok=True)
    assert harness.KUBECONFIG.exists(), "no cluster: make cluster-up"
    harness.install_crds()
    harness.kubectl("apply", "-f", harness.ROOT / "deploy/rbac.yaml")
    harness.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                    "crd/multidimpodautoscalers.autoscaling.faasrl.io")
    # Leftovers of a run that was ended.
    harness.kubectl("delete", "ns", "-l", "faasrl-e2e=true", "--ignore-not-found")
    harness.kubectl("delete", "lease", "--all", "-n", "faasrl-mpa")


@pytest.fixture(scope="session")
def real_pods(installed):
    if not harness.has_real_node():
        pytest.skip("needs real pods, and this cluster has only kwok nodes (it was started without root)")
    harness.cluster("load-image", harness.BUILD / "function.tar")


@pytest.fixture
def namespace(installed):
    name = f"e2e-{next(counter)}"
    harness.kubectl("create", "namespace", name)
    harness.kubectl("label", "namespace", name, "faasrl-e2e=true")
    yield name
    # At once: the next test's controller would still speak of an MPA in a namespace that is going.
    harness.kubectl("delete", "mpa", "--all", "-n", name)
    harness.kubectl("delete", "namespace", name, "--wait=false")
