"""CUDA graphs: one launch for a full model, captured at the first batch of a bucket.

A warm-up request of each batch size captures them before the first client's request. A model that cannot be captured
runs without a graph, with a line in the log.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from argosy_runtime.backends.batch_io import ragged_input_names
from argosy_runtime.backends.contract import Host, InstanceSpec

from .buckets import Bucket, buckets

Call = Callable[[Mapping[str, Any]], Any]
"""Runs the model on inputs by name."""

Capture = Callable[[Call, Mapping[str, torch.Tensor]], tuple[Any, Callable[[], None]]]
"""Captures a call on tensors: returns its results, and a function that computes them again from those tensors."""

# TorchScript measures the first runs and optimizes a later one; cuBLAS and cuDNN choose their workspaces in the first.
_RUNS_BEFORE: Final = 3
# A capture waits for the whole device and empties torch's cache, so one at a time.
_capturing = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Graph:
    """A captured call: the tensors of its inputs, and of its results."""

    inputs: Mapping[str, torch.Tensor]
    result: Any
    replay: Callable[[], None]

    def run(self, inputs: Mapping[str, torch.Tensor], rows: int) -> Any:
        """Return the results of `rows` rows (0: the model does not batch), in memory of their own."""
        for name, target in self.inputs.items():
            if rows:
                target[:rows].copy_(inputs[name])
                target[rows:].zero_()
            else:
                target.copy_(inputs[name])
        self.replay()
        return pytree.tree_map(lambda value: self._own(value, rows), self.result)

    def _own(self, value: torch.Tensor, rows: int) -> torch.Tensor:
        padded = next(iter(self.inputs.values())).shape[0] if rows else 0
        has_rows = rows > 0 and value.dim() > 0 and value.shape[0] == padded
        return (value[:rows] if has_rows else value).clone()


class Graphs:
    """One instance's graphs, by bucket."""

    def __init__(self, call: Call, specified: Sequence[Bucket], batched: bool, capture: Capture, host: Host, name: str):
        self._call = call
        self._buckets = specified
        self._batched = batched
        self._capture = capture
        self._host = host
        self._name = name
        self._graphs: dict[int, _Graph | None] = {}

    def __call__(self, inputs: Mapping[str, Any]) -> Any:
        """Return the model's results for a batch."""
        if not all(isinstance(value, torch.Tensor) for value in inputs.values()):
            return self._call(inputs)
        rows = self._rows(inputs)
        shapes = {name: tuple(value.shape[1:] if self._batched else value.shape) for name, value in inputs.items()}
        index = next((index for index, bucket in enumerate(self._buckets) if bucket.takes(rows, shapes)), None)
        if index is None:
            return self._call(inputs)
        if index not in self._graphs:
            self._graphs[index] = self._captured(self._buckets[index], inputs)
        graph = self._graphs[index]
        return self._call(inputs) if graph is None else graph.run(inputs, rows)

    def _rows(self, inputs: Mapping[str, torch.Tensor]) -> int:
        return next(iter(inputs.values())).shape[0] if self._batched else 0

    def _captured(self, bucket: Bucket, like: Mapping[str, torch.Tensor]) -> _Graph | None:
        batch = (bucket.rows,) if self._batched else ()
        targets = {
            name: torch.zeros((*batch, *bucket.shapes[name]), dtype=value.dtype, device=value.device)
            for name, value in like.items()
        }
        try:
            with _capturing:
                result, replay = self._capture(self._call, targets)
            self._check(result)
        except Exception as error:
            self._host.log(
                "warning",
                f"model instance '{self._name}': batches of {bucket.smallest} to {bucket.rows} run without a CUDA "
                f"graph, which could not be captured: {error}",
            )
            return None
        return _Graph(targets, result, replay)

    def _check(self, result: Any) -> None:
        other = next((value for value in pytree.tree_leaves(result) if not isinstance(value, torch.Tensor)), None)
        if other is not None:
            raise TypeError(f"the model returns {type(other).__name__} among its tensors")


class CudaCapture:
    """Captures on the current stream. An instance's graphs share their memory: they never run at the same time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, call: Call, inputs: Mapping[str, torch.Tensor]) -> tuple[Any, Callable[[], None]]:
        for _ in range(_RUNS_BEFORE):
            call(inputs)
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        # Other threads go on allocating and copying meanwhile, so what is forbidden is forbidden to this one alone.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            result = call(inputs)
        return result, graph.replay


def with_graphs(spec: InstanceSpec, call: Call, device: torch.device, host: Host) -> Call:
    """Return `call` through CUDA graphs where the configuration requests them. Raises ServingError."""
    if not spec.config.optimization.cuda.graphs:
        return call
    ragged = bool(ragged_input_names(spec.config) or spec.config.batch_input)
    specified = [] if ragged else buckets(spec.config)
    if specified and device.type == "cuda" and spec.kind == "KIND_GPU":
        return Graphs(call, specified, spec.config.max_batch_size > 0, CudaCapture(), host, spec.name)
    reason = "its inputs' shapes vary; give each that counts a graph_spec"
    if specified or ragged:
        reason = "its batches are ragged" if ragged else "it is not on a GPU of its own"
    host.log("warning", f"model instance '{spec.name}' has no CUDA graphs: {reason}")
    return call


__all__ = ["Call", "Capture", "CudaCapture", "Graphs", "with_graphs"]
