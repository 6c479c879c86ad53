"""What mpactl convert makes of other autoscalers is taken by a real API server."""
import pytest
import yaml

from harness import BUILD, ROOT, kubectl, run

FILES = sorted((ROOT / "tests/convert").glob("*.yaml"))


@pytest.mark.parametrize("options", [[], ["--latency=250ms", "--replicas=3"]], ids=["as before", "with a latency goal"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_api_server_takes_it(namespace, path, options):
    converted = run(BUILD / "mpactl", "convert", "-f", path, *options).stdout
    manifests = list(yaml.safe_load_all(converted))
    for manifest in manifests:
        manifest["metadata"]["namespace"] = namespace
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    assert done.stdout.count("created (server dry run)") == len(manifests)
