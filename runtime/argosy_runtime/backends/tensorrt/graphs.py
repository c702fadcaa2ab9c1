"""CUDA graphs: one launch for a whole run, captured when an instance is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.cuda import ComputeStream, Graph
from argosy_runtime.errors import ServingError

from .execution import Given, Made, ProfileContext, size_of
from .graphspecs import GraphSpec
from .memory import Block, BlockPool
from .outputs import OutputAllocator
from .signature import Shape, Signature


@dataclass(frozen=True, slots=True)
class _Captured:
    """A graph reads and writes where it was captured; its inputs have the shapes of then."""

    spec: GraphSpec
    shapes: Mapping[str, Shape]
    inputs: Mapping[str, Block]
    outputs: Mapping[str, Made]
    graph: Graph

    def takes(self, rows: int, shapes: Mapping[str, Shape]) -> bool:
        """Return whether a batch is one of those that it is for."""
        if not self.spec.rows:
            return shapes == self.shapes
        same = all(shape[1:] == self.shapes[name][1:] for name, shape in shapes.items())
        return same and self.spec.smallest <= rows <= self.spec.rows


class Graphs:
    """One instance's graphs, by profile."""

    def __init__(self, found: Signature, stream: ComputeStream, pool: BlockPool, host: Host, instance: str) -> None:
        self._found = found
        self._stream = stream
        self._pool = pool
        self._host = host
        self._instance = instance
        self._captured: dict[int, list[_Captured]] = {}

    def capture(self, contexts: Sequence[ProfileContext], specs: Sequence[GraphSpec]) -> None:
        """Capture what can be; what cannot runs without, with a line in the log."""
        if specs and self._found.has_shape_tensors:
            self._log(f"Detected shape tensor, CUDA graph is not captured for {self._instance}")
            return
        for context in contexts:
            made = [self._capture(context, spec) for spec in specs]
            self._captured[context.profile.index] = [each for each in made if each is not None]

    def _capture(self, context: ProfileContext, spec: GraphSpec) -> _Captured | None:
        shapes = spec.full(context.profile)
        if shapes is None:
            return None  # another profile's batches
        try:
            captured = self._captured_as(context, spec, shapes)
        except ServingError as error:
            self._log(f"unable to record CUDA graph for {self._instance}, batch size {spec.rows}: {error.message}")
            return None
        if captured is None:
            self._log(f"unable to record CUDA graph for {self._instance}, batch size {spec.rows}")
        return captured

    def _captured_as(self, context: ProfileContext, spec: GraphSpec, shapes: Mapping[str, Shape]) -> _Captured | None:
        blocks = {name: self._zeros(size_of(self._found.inputs[name], shape)) for name, shape in shapes.items()}
        context.bind_inputs({name: Given(blocks[name].address, shape, blocks[name]) for name, shape in shapes.items()})
        places = context.bind_outputs(self._pool)
        outputs = {name: place for name, place in places.items() if not isinstance(place, OutputAllocator)}
        if len(outputs) < len(places):
            return None  # a graph cannot ask for memory
        context.enqueue()  # once for real: the first run of a shape does what must not be captured
        self._stream.synchronize()
        graph = self._stream.capture(context.enqueued)
        return None if graph is None else _Captured(spec, shapes, blocks, outputs, graph)

    def _zeros(self, size: int) -> Block:
        block = self._pool.take(size)
        zeros = np.zeros(size, np.uint8)
        self._stream.copy(block.address, zeros.ctypes.data, size)
        self._stream.synchronize()
        return block

    def run(self, context: ProfileContext, inputs: Mapping[str, Given]) -> dict[str, Made] | None:
        """Begin the run as a graph, its outputs in memory of their own; None where no graph is for this batch.

        Rows beyond the batch's keep what they had: no row's result depends on another's.
        """
        shapes = {name: given.shape for name, given in inputs.items()}
        known = self._captured.get(context.profile.index, ())
        rows = next((shape[0] for shape in shapes.values() if shape), 0)
        found = next((each for each in known if each.takes(rows, shapes)), None)
        if found is None:
            return None
        for name, given in inputs.items():
            size = size_of(self._found.inputs[name], given.shape)
            self._stream.copy(found.inputs[name].address, given.address, size)
        found.graph.launch()
        return {name: self._own(name, made, found.spec, rows) for name, made in found.outputs.items()}

    def _own(self, name: str, made: Made, spec: GraphSpec, rows: int) -> Made:
        assert made.block is not None, "no engine with tensors on the host has graphs"
        shape = (rows, *made.shape[1:]) if spec.rows and made.shape[:1] == (spec.rows,) else made.shape
        size = size_of(self._found.outputs[name], shape)
        block = self._pool.take(size)
        self._stream.copy(block.address, made.block.address, size)
        return Made(shape, block)

    def close(self) -> None:
        """Give them back."""
        for captured in self._captured.values():
            for each in captured:
                each.graph.close()
        self._captured.clear()

    def _log(self, line: str) -> None:
        self._host.log("warning", line)


__all__ = ["Graphs"]
