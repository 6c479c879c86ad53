"""What the controller's queries make of the series that there are, by Prometheus' own judgement."""
import re
import subprocess

import pytest
import yaml

from chart import ROOT

TEMPLATES = (ROOT / "pkg/prometheus/template.c").read_text()
OF_POD = 'namespace="shop",pod="web-1",kn_revision_name="web-00001"'


def query(metric):
    """As it is asked for the namespace shop and a window of a minute."""
    literals, = re.findall(rf'\[{metric}\] =\s*\{{"\w+",((?:\s*"(?:[^"\\]|\\.)*")+)\}}', TEMPLATES)
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')
    return text.replace("$namespaces", "shop").replace("$window", "1m")


def histogram(name, labels, *bounds_and_rates):
    """Series of a histogram that grows by so much a second in each bucket, told every 15 s."""
    return {f'{name}_bucket{{{labels},le="{bound}"}}': f"0+{15 * rate}x20" for bound, rate in bounds_and_rates}


def newer(pod="web-1"):
    return histogram("http_server_request_duration_seconds", f'namespace="shop",pod="{pod}",http_response_status_code="200"',
                     ("0.25", 9), ("+Inf", 10))


def older(pod="web-1", code=200):
    labels = f'namespace="shop",pod="{pod}",container_name="queue-proxy",response_code="{code}"'
    return histogram("revision_request_latencies", labels, ("250", 9), ("+Inf", 10))


# What queue-proxy has handed on, without the wait before; beside the above.
ONLY_THE_CONTAINER = histogram("revision_app_request_latencies", 'namespace="shop",pod="web-1",response_code="200"',
                               ("250", 10), ("+Inf", 10))


def answer(pod, bound, rate, **more):
    labels = {"namespace": "shop", "pod": pod, "le": bound, **more}
    return "{" + ", ".join(f'{k}="{v}"' for k, v in labels.items()) + "}", rate


@pytest.mark.parametrize("series, answers", [
    (newer(), [answer("web-1", "0.25", 9), answer("web-1", "+Inf", 10)]),
    ({**older(), **ONLY_THE_CONTAINER}, [answer("web-1", "250", 9, unit="ms"), answer("web-1", "+Inf", 10, unit="ms")]),
    ({**older(code=200), **older(code=500)},
     [answer("web-1", "250", 18, unit="ms"), answer("web-1", "+Inf", 20, unit="ms")]),
    ({**newer(), **older("old-1")}, [answer("web-1", "0.25", 9), answer("web-1", "+Inf", 10),
                                     answer("old-1", "250", 9, unit="ms"), answer("old-1", "+Inf", 10, unit="ms")]),
    ({f"target_info{{{OF_POD}}}": "1+0x20"}, [answer("web-1", "+Inf", 0)]),
    ({'target_info{namespace="shop",pod="db-1"}': "1+0x20"}, []),
    ({s.replace('"shop"', '"other"'): values for s, values in newer().items()}, []),
], ids=["Knative 1.19", "before", "before, two codes", "both", "never asked", "not of Knative", "another namespace"])
def test_what_queue_proxies_have_measured(series, answers, tmp_path):
    expected = [{"labels": labels, "value": value} for labels, value in answers]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"tests": [{
        "interval": "15s", "input_series": [{"series": s, "values": v} for s, v in series.items()],
        "promql_expr_test": [{"expr": query("PROM_PROXY_BUCKETS"), "eval_time": "4m", "exp_samples": expected}]}]}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "test.yaml"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
