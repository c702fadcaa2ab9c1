"""CUDA graphs: one launch for a whole run, captured when an instance is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.devices.cuda import CudaGraph, CudaStream
from argosy_runtime.errors import ServingError

from .execution import InputBinding, OutputAllocator, OutputBinding, ProfileContext, size_of
from .graphspecs import GraphSpec
from .memory import Block, BlockPool
from .signature import Shape, Signature


@dataclass(frozen=True, slots=True)
class _Captured:
    """A captured graph, which reads and writes where it was captured; `shapes` are its inputs'."""

    spec: GraphSpec
    shapes: Mapping[str, Shape]
    inputs: Mapping[str, Block]
    outputs: Mapping[str, OutputBinding]
    graph: CudaGraph

    def takes(self, rows: int, shapes: Mapping[str, Shape]) -> bool:
        """Return whether the graph serves a batch of these rows and shapes."""
        if not self.spec.rows:
            return shapes == self.shapes
        same = all(shape[1:] == self.shapes[name][1:] for name, shape in shapes.items())
        return same and self.spec.smallest <= rows <= self.spec.rows


class Graphs:
    """One instance's graphs, by profile."""

    def __init__(self, signature: Signature, stream: CudaStream, pool: BlockPool, host: Host, instance: str) -> None:
        self._signature = signature
        self._stream = stream
        self._pool = pool
        self._host = host
        self._instance = instance
        self._captured: dict[int, list[_Captured]] = {}

    def capture(self, contexts: Sequence[ProfileContext], specs: Sequence[GraphSpec]) -> None:
        """Capture a graph for each profile and specification; log those that cannot be captured."""
        if specs and self._signature.has_shape_tensors:
            self._log(f"Detected shape tensor, CUDA graph is not captured for {self._instance}")
            return
        for context in contexts:
            graphs = [self._capture(context, spec) for spec in specs]
            self._captured[context.profile.index] = [graph for graph in graphs if graph is not None]

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
        blocks = {name: self._zeros(size_of(self._signature.inputs[name], shape)) for name, shape in shapes.items()}
        inputs = {name: InputBinding(block.address, shapes[name], block) for name, block in blocks.items()}
        context.bind_inputs(inputs)
        bindings = context.bind_outputs(self._pool)
        outputs = {name: bound for name, bound in bindings.items() if not isinstance(bound, OutputAllocator)}
        if len(outputs) < len(bindings):
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

    def run(self, context: ProfileContext, inputs: Mapping[str, InputBinding]) -> dict[str, OutputBinding] | None:
        """Begin the run as a graph, its outputs in memory of their own. Return None where no graph is for this batch.

        Rows beyond the batch's keep their former values: no row's result depends on another's.
        """
        shapes = {name: binding.shape for name, binding in inputs.items()}
        graphs = self._captured.get(context.profile.index, ())
        rows = next((shape[0] for shape in shapes.values() if shape), 0)
        captured = next((graph for graph in graphs if graph.takes(rows, shapes)), None)
        if captured is None:
            return None
        for name, binding in inputs.items():
            size = size_of(self._signature.inputs[name], binding.shape)
            self._stream.copy(captured.inputs[name].address, binding.address, size)
        captured.graph.launch()
        return {name: self._own(name, output, captured.spec, rows) for name, output in captured.outputs.items()}

    def _own(self, name: str, output: OutputBinding, spec: GraphSpec, rows: int) -> OutputBinding:
        assert output.block is not None, "no engine with tensors on the host has graphs"
        shape = (rows, *output.shape[1:]) if spec.rows and output.shape[:1] == (spec.rows,) else output.shape
        size = size_of(self._signature.outputs[name], shape)
        block = self._pool.take(size)
        self._stream.copy(block.address, output.block.address, size)
        return OutputBinding(shape, block)

    def close(self) -> None:
        """Release the graphs."""
        for graphs in self._captured.values():
            for graph in graphs:
                graph.graph.close()
        self._captured.clear()

    def _log(self, line: str) -> None:
        self._host.log("warning", line)


__all__ = ["Graphs"]
