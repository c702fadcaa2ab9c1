"""What rules ask of NVIDIA's own server, which alone has a response cache: it is there by that name."""

import json
import re
import urllib.request
from pathlib import Path

import pytest
from tests.chart.monitoring.test_names import EXPRESSIONS, queried
from tests.peers.fixtures import StartServer, triton_server

__all__ = ["triton_server"]

CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
response_cache { enable: true }
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)]) for value in values]
"""
QUERIED = {name for name in queried(EXPRESSIONS) if name.startswith(("nv_inference_", "nv_cache_"))}
"""Without `nv_model_load_duration_secs`, which is in later releases than the one that tests bring."""


@pytest.mark.triton
def test_what_rules_ask_of_tritons_own_metrics_is_there(triton_server: StartServer, tmp_path: Path) -> None:
    version = tmp_path / "models" / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(MODEL)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    server = triton_server(tmp_path / "models", "--cache-config=local,size=1048576")
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [3]}
    body = json.dumps({"inputs": [tensor]}).encode()
    for _ in range(3):
        urllib.request.urlopen(f"http://{server.http}/v2/models/m/infer", body, timeout=30).close()
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    samples = set(re.findall(r'^(\w+)\{[^}]*model="m"[^}]*\} (\S+)$', text, re.MULTILINE))
    assert {name for name, _ in samples} >= QUERIED
    assert ("nv_cache_num_hits_per_model", "2") in samples
    assert ("nv_cache_num_misses_per_model", "1") in samples
