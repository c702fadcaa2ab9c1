"""Which requests share a batch, over HTTP: ragged inputs, a strategy of the model's own, limits of queues."""

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from tests.runtime.backends.onnxruntime.graphs import graph
from tests.serve.conftest import AddModel, Start
from tests.serve.process import Serving

ROOT = Path(__file__).parents[2]
RAGGED = """
backend: "onnxruntime" max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "ENDS" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } }
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "N" data_type: TYPE_INT32 source_input: "X" }
batch_output { target_name: "OUT" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }
dynamic_batching { }
model_warmup {
  name: "one" batch_size: 2 inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } }
}
"""
STRATEGY_CONFIG = """
backend: "python" max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
dynamic_batching { }
parameters { key: "BATCH_STRATEGY" value { string_value: "volume.py" } }
parameters { key: "MAX_BATCH_VOLUME_BYTES" value { string_value: "96" } }
"""
COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        count = pb_utils.Tensor("Y", np.array([[len(requests)]], np.int32))
        return [pb_utils.InferenceResponse([count]) for _ in requests]
"""


def volume_strategy() -> str:
    """Return the strategy of the page about batching."""
    page = (ROOT / "docs/how-to/batching.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(code)


def together(server: Serving, model: str, bodies: Sequence[dict[str, Any]]) -> list[tuple[int, Any]]:
    """Send requests one after the other without waiting for answers. Return their statuses and answers."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        futures = []
        for body in bodies:
            futures.append(pool.submit(server.ask, f"/v2/models/{model}/infer", body))
            time.sleep(0.05)
        return [(status, json.loads(text)) for status, text in (future.result() for future in futures)]


def fp32(values: list[float]) -> dict[str, Any]:
    return {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, len(values)], "data": values}]}


def statistics(server: Serving, model: str) -> Any:
    return json.loads(server.ask(f"/v2/models/{model}/stats")[1])["model_stats"][0]


def add(folder: Path, config: str, files: dict[str, str]) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_requests_of_different_shapes_share_a_batch(
    tmp_path: Path, serve: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "3")
    folder = tmp_path / "models" / "ragged"
    add(folder, RAGGED, {})
    flat, count = (TensorProto.FLOAT, [None]), (TensorProto.INT32, [None])
    nodes = [("Add", ["X", "X"], ["OUT"]), ("Identity", ["N"], ["ENDS"])]
    graph(folder / "1" / "model.onnx", nodes, {"X": flat, "N": count}, {"OUT": flat, "ENDS": count})
    server = serve().wait_until_ready()
    warmed = statistics(server, "ragged")
    answers = together(server, "ragged", [fp32([1, 2, 3]), fp32([4]), fp32([5, 6])])
    assert [status for status, _ in answers] == [200] * 3, answers
    outputs = [{one["name"]: (one["shape"], one["data"]) for one in body["outputs"]} for _, body in answers]
    assert [output["OUT"] for output in outputs] == [([1, 3], [2, 4, 6]), ([1, 1], [8]), ([1, 2], [10, 12])]
    assert [output["ENDS"] for output in outputs] == [([1, 1], [3]), ([1, 1], [4]), ([1, 1], [6])]
    after = statistics(server, "ragged")
    assert after["inference_count"] - warmed["inference_count"] == 3
    assert after["execution_count"] - warmed["execution_count"] == 1


def test_a_strategy_of_the_model_limits_its_batches(
    tmp_path: Path, serve: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "5")
    folder = tmp_path / "models" / "volume"
    add(folder, STRATEGY_CONFIG, {"volume.py": volume_strategy(), "1/model.py": COUNTING})
    server = serve().wait_until_ready()
    answers = together(server, "volume", [fp32([0.0] * size) for size in (8, 16, 8, 40, 8)])
    assert [body["outputs"][0]["data"][0] for _, body in answers] == [2, 2, 1, 1, 1], "24 values of 4 bytes are 96"


def test_a_strategy_that_fails_refuses_nothing(tmp_path: Path, serve: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "3")
    folder = tmp_path / "models" / "failing"
    failing = (
        "class BatchStrategy:\n    def __init__(self, config): pass\n    def include(self, batch, request): 1 / 0\n"
    )
    add(folder, STRATEGY_CONFIG, {"volume.py": failing, "1/model.py": COUNTING})
    server = serve().wait_until_ready()
    answers = together(server, "failing", [fp32([1.0])] * 3)
    assert [body["outputs"][0]["data"][0] for _, body in answers] == [1, 1, 1]
    assert "the batching strategy of model 'failing' failed (1 times so far)" in server.text
    assert "ZeroDivisionError" in server.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"volume.py": None}, "there is no file"),
        ({"volume.py": "class Other: pass"}, "cannot be used: AttributeError"),
        (
            {"volume.py": "class BatchStrategy:\n    def __init__(self, config): raise ValueError('no')"},
            "ValueError: no",
        ),
        ({"batchstrategy.so": "ELF"}, "is a batching library for Triton's C API"),
    ],
)
def test_a_strategy_that_cannot_be_used(
    tmp_path: Path, serve: Start, changes: dict[str, str | None], message: str
) -> None:
    files = {"volume.py": volume_strategy(), "1/model.py": COUNTING, **changes}
    add(
        tmp_path / "models" / "broken",
        STRATEGY_CONFIG,
        {name: text for name, text in files.items() if text is not None},
    )
    server = serve("--model-control-mode=explicit", "--exit-on-error=false")
    server.wait_for_ports()
    status, body = server.ask("/v2/repository/models/broken/load", {})
    assert status == 400
    assert message in json.loads(body)["error"]


def test_a_queue_is_limited_without_dynamic_batching(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    folder = add_model("slow", execute="time.sleep(1); y = x")
    limited = '{"default_queue_policy": {"max_queue_size": 1}}'
    with (folder / "config.pbtxt").open("a") as file:
        file.write(f"parameters {{ key: 'queue_policies' value {{ string_value: '{limited}' }} }}")
    server = serve().wait_until_ready()
    body = {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}]}
    answers = together(server, "slow", [body] * 3)
    assert [status for status, _ in answers] == [200, 200, 503]
    assert answers[2][1]["error"] == "[request id: <id_unknown>] Exceeds maximum queue size"
