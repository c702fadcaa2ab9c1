"""Ragged batches on real sessions: requests of different shapes share a run, and each gets its own elements."""

from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from onnx import TensorProto
from tests.runtime.backends.onnxruntime.graphs import graph, request

from argosy_runtime.errors import ServingError

FLAT = (TensorProto.FLOAT, [None])
CONFIG = """
  name: "m" backend: "onnxruntime" max_batch_size: 8
  input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
  output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
  output { name: "SIZE" data_type: TYPE_FP32 dims: [ 1 ] reshape: { shape: [ ] } }
  batch_input { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "X" }
  batch_output { target_name: "OUT" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }
"""


def doubled(path: Path, shape: list[int | str | None] | None = None) -> None:
    """Save a model that adds X to itself, and returns the counts that it was given."""
    tensor = FLAT if shape is None else (TensorProto.FLOAT, shape)
    nodes = [("Add", ["X", "X"], ["OUT"]), ("Identity", ["N"], ["SIZE"])]
    graph(path, nodes, {"X": tensor, "N": FLAT}, {"OUT": tensor, "SIZE": FLAT})


def test_requests_of_different_shapes_share_a_run(loaded: Any, responder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = loaded(CONFIG, doubled)
    runs = []
    run = onnxruntime.InferenceSession.run
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", lambda *args: runs.append(1) or run(*args))
    instance.execute([request(X=[[1, 2, 3]]), request(X=[[4]]), request(X=[[5, 6]])], responder)
    assert runs == [1]
    outputs = [{output.name: output.array.tolist() for output in responder.only(index).outputs} for index in range(3)]
    assert outputs == [
        {"OUT": [[2, 4, 6]], "SIZE": [3]},
        {"OUT": [[8]], "SIZE": [1]},
        {"OUT": [[10, 12]], "SIZE": [2]},
    ]


def test_one_request_is_flat_too(loaded: Any, responder: Any) -> None:
    only = request(X=[[1], [2]])
    only.requested_outputs = ("OUT",)
    loaded(CONFIG, doubled).execute([only], responder)
    (output,) = responder.only(0).outputs
    assert output.array.tolist() == [[2], [4]]


def test_a_model_must_take_one_variable_dimension(loaded: Any) -> None:
    with pytest.raises(ServingError) as caught:
        loaded(CONFIG, lambda path: doubled(path, ["batch", None]))
    assert caught.value.message == (
        "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'X', "
        "model provides [-1,-1]"
    )


def test_a_batch_input_must_be_an_input_of_the_model(loaded: Any) -> None:
    with pytest.raises(ServingError) as caught:
        loaded(CONFIG.replace('target_name: "N"', 'target_name: "COUNTS"'), doubled)
    assert caught.value.message == "unexpected inference input 'COUNTS', allowed inputs are: N, X"
