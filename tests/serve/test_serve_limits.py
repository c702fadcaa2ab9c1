"""The response cache, the rate limiter and metrics' settings of a whole server, over its ports."""

import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.conftest import CONFIG

CACHED = CONFIG + "response_cache { enable: true }"
LIMITED = 'instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 2 } ] } } ]'
SLEEP = "begun = time.monotonic(); time.sleep(0.2); self.log(begun, time.monotonic()); y = x"


def over_grpc(serving: Any, model: str, value: int) -> int:
    """Return Y of a request over gRPC."""
    with grpc.InferenceServerClient(f"127.0.0.1:{serving.ports['GRPCInference']}") as client:
        tensor = grpc.InferInput("X", [1], "INT32")
        tensor.set_data_from_numpy(np.array([value], np.int32))
        return int(client.infer(model, [tensor]).as_numpy("Y")[0])


def in_binary(serving: Any, model: str, value: int) -> int:
    """Return Y of a request over HTTP in binary."""
    with http.InferenceServerClient(f"127.0.0.1:{serving.ports['HTTP']}") as client:
        tensor = http.InferInput("X", [1], "INT32")
        tensor.set_data_from_numpy(np.array([value], np.int32), binary_data=True)
        return int(client.infer(model, [tensor]).as_numpy("Y")[0])


def values(serving: Any, model: str) -> dict[str, float]:
    """Return a model's metrics without further labels, by name."""
    result = {}
    for family in text_string_to_metric_families(serving.metrics()):
        for sample in family.samples:
            if sample.labels.get("model") == model and len(sample.labels) == 2:
                result[sample.name.removesuffix("_total")] = sample.value
    return result


def test_all_protocols_share_one_cache(add_model, serve):
    folder = add_model("kept", "self.runs = getattr(self, 'runs', 0) + 1; y = x + 100 * self.runs")
    (folder / "config.pbtxt").write_text(CACHED)
    serving = serve("--cache-config", "local,size=1048576").wait_until_ready()
    assert serving.infer("kept", 1) == (200, 101)
    assert over_grpc(serving, "kept", 1) == in_binary(serving, "kept", 1) == 101
    assert over_grpc(serving, "kept", 2) == 202
    assert serving.infer("kept", 2) == (200, 202)
    reported = values(serving, "kept")
    assert (reported["nv_cache_num_hits_per_model"], reported["nv_cache_num_misses_per_model"]) == (3, 2)
    assert (reported["nv_inference_request_success"], reported["nv_inference_count"]) == (5, 2)
    statistics = json.loads(serving.ask("/v2/models/kept/stats")[1])["model_stats"][0]["inference_stats"]
    assert (statistics["cache_hit"]["count"], statistics["cache_miss"]["count"]) == (3, 2)


def test_models_share_a_resource(add_model, serve, tmp_path):
    log = f"self.log = lambda *times: open({str(tmp_path / 'times')!r}, 'a').write(f'{{times[0]}} {{times[1]}}\\n')"
    for name in "ab":
        (add_model(name, SLEEP, log) / "config.pbtxt").write_text(CONFIG + LIMITED)
    serving = serve("--rate-limit=execution_count", "--rate-limit-resource=R:3").wait_until_ready()
    threads = [threading.Thread(target=serving.infer, args=(name, 1)) for name in "abab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(tuple(map(float, line.split())) for line in (tmp_path / "times").read_text().splitlines())
    assert len(times) == 4
    assert all(times[number][1] <= times[number + 1][0] for number in range(3)), times


def test_a_model_that_could_never_run_does_not_start(add_model, serve):
    (add_model("m") / "config.pbtxt").write_text(CONFIG + LIMITED)
    serving = serve("--rate-limit=execution_count", "--rate-limit-resource=R:1")
    assert serving.process.wait(30) == 1
    assert 'Resource count for "R" is limited to 1 which will prevent scheduling of one or more model' in serving.text


@pytest.mark.parametrize(
    ("setting", "there", "absent"),
    [
        ("summary_latencies=true", "nv_inference_request_summary_us", "nv_cache_num_hits_per_model{"),
        ("counter_latencies=false", "nv_inference_request_success", "nv_inference_request_duration_us"),
        ("histogram_latencies=true", 'nv_inference_first_response_histogram_ms_bucket{model="m"', "_summary_us"),
        ("histogram_latencies=false", "nv_inference_count", "first_response_histogram_ms"),
    ],
)
def test_the_families_of_latencies(add_model, serve, setting, there, absent):
    add_model("m")
    serving = serve(f"--metrics-config={setting}").wait_until_ready()
    serving.infer("m", 1)
    text = serving.metrics()
    assert there in text
    assert absent not in text


def test_a_summary_has_the_quantiles_of_its_flag(add_model, serve):
    add_model("m")
    flags = ("--metrics-config=summary_latencies=true", "--metrics-config=summary_quantiles=0.25:0.1,0.75:0.1")
    serving = serve(*flags).wait_until_ready()
    for _ in range(3):
        serving.infer("m", 1)
    families = {family.name: family for family in text_string_to_metric_families(serving.metrics())}
    samples = families["nv_inference_request_summary_us"].samples
    assert [sample.labels["quantile"] for sample in samples if "quantile" in sample.labels] == ["0.25", "0.75"]
    assert all(0 < sample.value < 10e6 for sample in samples)
    assert [sample.value for sample in samples if sample.name.endswith("_count")] == [3]


def test_buckets_of_a_models_own(add_model, serve):
    buckets = (
        'model_metrics { metric_control [ { metric_identifier { family: "nv_inference_first_response_histogram_ms" '
    )
    own = CONFIG + buckets + "} histogram_options { buckets: [ 0.01, 20000.5 ] } } ] }"
    (add_model("m") / "config.pbtxt").write_text(own)
    serving = serve("--metrics-config=histogram_latencies=true").wait_until_ready()
    serving.infer("m", 1)
    name = 'nv_inference_first_response_histogram_ms_bucket{model="m",version="1",le="'
    lines = dict(line.rsplit(" ", 1) for line in serving.metrics().splitlines() if line.startswith(name))
    assert lines == {f'{name}0.01"}}': "0", f'{name}20000.5"}}': "1", f'{name}+Inf"}}': "1"}


def test_an_unknown_cache_ends_the_start(tmp_path):
    command = [
        sys.executable,
        "-m",
        "argosy.cli",
        "serve",
        f"--model-repository={tmp_path}",
        "--cache-config=redis,x=y",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode
    assert "unable to find 'libtritoncache_redis.so' for cache. Searched: " in done.stderr
