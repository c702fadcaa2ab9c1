"""Models whose first requests wait for each other, and the batches that they make of them.

`TRITONSERVER_DELAY_SCHEDULER` holds each model until `HELD` requests wait. They are sent one after the other, and each
is answered with the number of its execution, so that batches are compared request by request.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.differential.http_calls import Call, infer, send, tensor

HELD = 6
_PAUSE_S = 0.03
CONFIG = """
name: "%s" backend: "python" max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] %s }
input { name: "M" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
output [ { name: "RUN" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { %s }
"""
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.runs = 0

    def execute(self, requests):
        self.runs += 1
        responses = []
        for request in requests:
            rows = pb_utils.get_input_tensor_by_name(request, "X").as_numpy().shape[0]
            run = pb_utils.Tensor("RUN", np.full((rows, 1), self.runs, np.int32))
            responses.append(pb_utils.InferenceResponse([run]))
        return responses
"""


@dataclass(frozen=True)
class Sent:
    """A request of so many rows of a length, with or without the optional input."""

    rows: int = 1
    length: int = 1
    optional: bool = False
    priority: int = 0

    def call(self, model: str) -> Call:
        """Return the request to a model."""
        inputs = [tensor("X", [self.rows, self.length], "FP32", [0.0] * self.rows * self.length)]
        if self.optional:
            inputs.append(tensor("M", [self.rows, 1], "FP32", [0.0] * self.rows))
        return infer(model, *inputs, parameters={"priority": self.priority})


@dataclass(frozen=True)
class Batches:
    """A model's dynamic batching, its first requests, and the number of the execution of each."""

    name: str
    batching: str
    sent: tuple[Sent, ...]
    runs: list[int]
    ragged: bool = False


def _rows(*rows: int) -> tuple[Sent, ...]:
    return tuple(Sent(count) for count in rows)


# Over for all but the last of the requests when they are batched, since they come one after the other.
_OVER = "max_queue_delay_microseconds: 1"
LENGTHS = tuple(Sent(length=length) for length in (1, 2, 2, 1, 1, 3))
CASES = (
    Batches("all", "", _rows(1, 1, 1, 1, 1, 1), [1, 1, 1, 1, 1, 1]),
    Batches("overflow", "", _rows(3, 3, 3, 3, 3, 3), [1, 1, 2, 2, 3, 3]),
    Batches("preferred_four", "preferred_batch_size: [ 4 ]", _rows(1, 1, 1, 1, 1, 1), [1, 1, 1, 1, 2, 2]),
    Batches("preferred_two_four", "preferred_batch_size: [ 2, 4 ]", _rows(2, 1, 1, 2, 1, 1), [1, 1, 1, 2, 2, 2]),
    Batches("preferred_missed", "preferred_batch_size: [ 4 ]", _rows(3, 2, 1, 3, 2, 1), [1, 2, 2, 3, 4, 4]),
    Batches("preferred_one", "preferred_batch_size: [ 1 ]", _rows(1, 2, 1, 3, 1, 1), [1, 2, 3, 4, 5, 6]),
    Batches("larger_than_preferred", "preferred_batch_size: [ 2 ]", _rows(6, 1, 1, 7, 1, 1), [1, 2, 2, 3, 4, 4]),
    Batches("delay_over", f"preferred_batch_size: [ 4 ] {_OVER}", _rows(1, 1, 1, 1, 1, 1), [1, 1, 1, 1, 1, 1]),
    Batches("delay_over_twos", f"preferred_batch_size: [ 3 ] {_OVER}", _rows(2, 2, 2, 2, 2, 2), [1, 1, 1, 1, 2, 2]),
    Batches("delay_over_threes", f"preferred_batch_size: [ 4 ] {_OVER}", _rows(3, 3, 3, 3, 1, 1), [1, 1, 2, 2, 2, 2]),
    Batches("delay_over_mixed", f"preferred_batch_size: [ 2 ] {_OVER}", _rows(3, 1, 2, 3, 1, 4), [1, 1, 1, 2, 2, 2]),
    Batches("delay_over_none", _OVER, _rows(3, 3, 3, 3, 1, 1), [1, 1, 2, 2, 2, 2]),
    Batches("lengths", "", LENGTHS, [1, 2, 2, 3, 3, 4]),
    Batches("lengths_preferred", "preferred_batch_size: [ 2 ]", LENGTHS, [1, 2, 2, 3, 3, 4]),
    Batches("ragged", "", LENGTHS, [1, 1, 1, 1, 1, 1], ragged=True),
    Batches(
        "optional",
        "",
        tuple(Sent(optional=optional) for optional in (False, False, True, True, False, True)),
        [1, 1, 2, 2, 3, 4],
    ),
    Batches(
        "priorities",
        "priority_levels: 3 default_priority_level: 2 preferred_batch_size: [ 2 ]",
        tuple(Sent(priority=priority) for priority in (3, 0, 1, 2, 3, 1)),
        [3, 2, 1, 2, 3, 1],
    ),
)


def write(folder: Path, cases: Sequence[Batches] = CASES) -> Path:
    """Write the models of the cases, and return their repository."""
    for case in cases:
        model = folder / case.name
        (model / "1").mkdir(parents=True)
        ragged = "allow_ragged_batch: true" if case.ragged else ""
        (model / "config.pbtxt").write_text(CONFIG % (case.name, ragged, case.batching))
        (model / "1" / "model.py").write_text(MODEL)
    return folder


def runs(address: str, case: Batches) -> list[Any]:
    """Send a case's requests in order, before the first is answered. Return the execution of each, or its answer."""
    with ThreadPoolExecutor(len(case.sent)) as pool:
        futures = []
        for sent in case.sent:
            futures.append(pool.submit(send, address, sent.call(case.name)))
            time.sleep(_PAUSE_S)
        answers = [future.result() for future in futures]
    return [answer["body"]["outputs"][0]["data"][0] if answer["status"] == 200 else answer for answer in answers]
