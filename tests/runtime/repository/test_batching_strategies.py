"""Strategies of models: which file is loaded, what is refused, and that errors stay within bounds. And holds."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, RequestTemplate, Tensor
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.serving.batching.delay_hooks import DYNAMIC, held_requests
from argosy_runtime.repository.serving.batching.strategies import load_strategy
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.batching.strategy import BatchStrategy
from argosy_runtime.scheduling.queued_request import QueuedRequest

BATCHING = "dynamic_batching { }"
NAMED = 'parameters { key: "BATCH_STRATEGY" value { string_value: "%s" } }'
LIBRARY = 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/b.so" } }'
PAIRS = """
class BatchStrategy:
    def __init__(self, config):
        self.name = config["name"]

    def include(self, batch, request):
        return self.name == "m" and len(batch) < 2 and request.inputs["X"].byte_size == 4
"""


def folder(path: Path) -> ModelFolder:
    return ModelFolder("m", path, "", (1,), {1: ()}, "")


def config(text: str) -> ModelConfig:
    return text_format.Parse(f'name: "m" max_batch_size: 8 {text}', ModelConfig())


def queued(*, raw: bool = False) -> QueuedRequest:
    request = InferRequest("m", {"X": Tensor("X", "FP32", np.zeros((1, 1), np.float32))})
    return QueuedRequest(RequestTemplate(request).request("", [b"\0" * 4]) if raw else request, 0)


def batches(strategy: BatchStrategy | None, waiting: list[QueuedRequest]) -> list[int]:
    batcher = DynamicBatcher(BatchingRules(max_batch_size=8))
    batcher.strategy = strategy
    for request in waiting:
        assert batcher.submit(request) is None
    return [len(batch.requests) for batch in batcher.advance(0, list(range(len(waiting)))).batches]


def test_a_model_without_the_parameter_has_none(tmp_path: Path) -> None:
    assert load_strategy(config(BATCHING), folder(tmp_path), 1) is None


def test_the_class_of_the_file_decides(tmp_path: Path) -> None:
    (tmp_path / "pairs.py").write_text(PAIRS)
    strategy = load_strategy(config(BATCHING + NAMED % "pairs.py"), folder(tmp_path), 1)
    assert batches(strategy, [queued() for _ in range(5)]) == [2, 2, 1]
    assert batches(strategy, [queued(raw=True) for _ in range(3)]) == [2, 1]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (BATCHING + NAMED % "strategy.so", ErrorKind.UNSUPPORTED, "'strategy.so' is no Python file"),
        (BATCHING + NAMED % "../pairs.py", ErrorKind.INVALID_ARG, "must be a path inside the model's folder"),
        (BATCHING + NAMED % "other.py", ErrorKind.NOT_FOUND, "there is no file"),
        (BATCHING + NAMED % "broken.py", ErrorKind.INVALID_ARG, "SyntaxError"),
        (BATCHING + LIBRARY, ErrorKind.UNSUPPORTED, "is a batching library for Triton's C API"),
        (
            "sequence_batching { }" + LIBRARY,
            ErrorKind.INVALID_ARG,
            "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, kind: ErrorKind, message: str) -> None:
    (tmp_path / "pairs.py").write_text(PAIRS)
    (tmp_path / "broken.py").write_text("class BatchStrategy(")
    with pytest.raises(ServingError) as caught:
        load_strategy(config(text), folder(tmp_path), 1)
    assert caught.value.kind is kind
    assert message in caught.value.message


@pytest.mark.parametrize("include", [lambda batch, request: 1 / 0, lambda batch, request: 1])
def test_a_failing_rule_refuses_nothing_and_reports_ever_more_seldom(include: Any) -> None:
    counts: list[int] = []
    strategy = BatchStrategy(include, lambda error, count: counts.append(count))
    assert batches(strategy, [queued() for _ in range(20)]) == [1] * 20
    assert counts == [1, 2, 4, 8, 16]


def test_a_report_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "failing.py").write_text(PAIRS.replace("return self", "raise KeyError(7)\n        return self"))
    strategy = load_strategy(config(BATCHING + NAMED % "failing.py"), folder(tmp_path), 1)
    with caplog.at_level(logging.ERROR, "argosy.repository"):
        assert batches(strategy, [queued(), queued()]) == [1, 1]
    assert "the batching strategy of model 'm' failed (1 times so far)" in caplog.text
    assert "KeyError(7)" in caplog.text


@pytest.mark.parametrize(
    ("value", "expected"), [("", 0), ("5", 5), (" 12 requests", 12), ("x", 0), ("-3", 0), ("99999999999", 999999999)]
)
def test_the_number_of_a_hold_is_read_as_in_c(value: str, expected: int) -> None:
    assert held_requests(DYNAMIC, {DYNAMIC: value}) == expected
    assert held_requests(DYNAMIC, {}) == 0
