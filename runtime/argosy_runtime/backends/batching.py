"""Many requests in one run: grouping, inputs joined along the batch dimension, outputs split again.

For frameworks whose models take and return full arrays. Requests of a batch that differ in their inputs' names, or in
the inner shapes of those that are not ragged, run apart. Where `max_batch_size` is 0 each request is a run of its own,
and shapes stay as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic_ns
from typing import Any, Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelOutput

from argosy_runtime.backends.batch_io import BatchTensors, Piece
from argosy_runtime.backends.contract import ExecutionTimes, Responder
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.failures.translation import explained, failure
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig import v2_name
from argosy_runtime.tensors import device_tensor
from argosy_runtime.tensors.device_arrays import DeviceArray

Output = Array | DeviceArray
"""A model's output: on the host, or in a device's memory."""


class Framework(Protocol):
    """One framework's way to join, run and fetch, called on the instance's own thread in this order."""

    def batch(self) -> AbstractContextManager[None]:
        """Surround one run and its copies; at its end the device is through with the batch."""

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Any:
        """Return an input for `run`: the tensors, one of each request, joined along the first dimension."""

    def run(self, inputs: Mapping[str, Any], requested: Sequence[str]) -> Mapping[str, Output]:
        """Run the model once. Return the requested outputs by name."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Copy outputs to the host, all together, into memory that no later batch touches."""


@dataclass(slots=True)
class Clock:
    """Nanoseconds spent on a batch."""

    inputs: int = 0
    infer: int = 0
    outputs: int = 0

    def times(self) -> ExecutionTimes:
        """Return the times of the contract."""
        return ExecutionTimes(self.inputs, self.infer, self.outputs)


class Batcher:
    """Executes batches of one model by its framework."""

    def __init__(self, config: ModelConfig, version: int, framework: Framework) -> None:
        self._config = config
        self._version = str(version)
        self._framework = framework
        self._batched = config.max_batch_size > 0
        self._outputs = {output.name: output for output in config.output}
        self._states = state_outputs(config)
        self._batch_tensors = BatchTensors(config)
        # Shape tensors have the same values for all of a batch, and no rows.
        self._shape_inputs = frozenset(tensor.name for tensor in config.input if tensor.is_shape_tensor)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Answer every request. A failed run fails its own requests alone."""
        clock = Clock()
        for group in together(requests, self._batched, self._shape_inputs, self._batch_tensors.ragged):
            members = [requests[index] for index in group]
            try:
                responses = self._answers(members, clock)
            except Exception as error:
                responses = [self._failed(request, error) for request in members]
            for index, response in zip(group, responses, strict=True):
                responder.send(index, response)
        return clock.times()

    def _answers(self, requests: Sequence[InferRequest], clock: Clock) -> list[InferResponse]:
        sizes = self._sizes(requests)
        requested = [self._requested(request) for request in requests]
        with self._framework.batch():
            begun = monotonic_ns()
            inputs = self._inputs(requests)
            joined = monotonic_ns()
            outputs = self._framework.run(inputs, sorted(set().union(*requested)))
            finished = monotonic_ns()
            for name, output in outputs.items():
                self._check_rows(name, output, sum(sizes))
            fetched = self._framework.fetch(_host_outputs(requests, requested, outputs))
        responses = self._split(requests, requested, outputs, fetched, sizes)
        clock.inputs += joined - begun
        clock.infer += finished - joined
        clock.outputs += monotonic_ns() - finished
        return responses

    def _inputs(self, requests: Sequence[InferRequest]) -> dict[str, Any]:
        own, gather = self._batch_tensors, self._framework.gather
        inputs = {
            name: gather(name, own.joined(name, [request.inputs[name] for request in requests]))
            for name in requests[0].inputs
        }
        for tensor in own.derived(requests):
            inputs[tensor.name] = gather(tensor.name, [tensor])
        return inputs

    def _sizes(self, requests: Sequence[InferRequest]) -> list[int]:
        if not self._batched:
            return [1]
        sizes = [_rows(self._with_rows(request)) for request in requests]
        self._check_total(sum(sizes))
        return sizes

    def _with_rows(self, request: InferRequest) -> Iterable[Tensor]:
        return (tensor for name, tensor in request.inputs.items() if name not in self._shape_inputs)

    def _check_total(self, total: int) -> None:
        if total > self._config.max_batch_size:
            raise internal(
                f"batch size {total} for '{self._config.name}', max allowed is {self._config.max_batch_size}"
            )

    def _requested(self, request: InferRequest) -> list[str]:
        return list(dict.fromkeys([*(request.requested_outputs or self._outputs), *self._states]))

    def _split(
        self,
        requests: Sequence[InferRequest],
        requested: Sequence[Sequence[str]],
        outputs: Mapping[str, Output],
        fetched: Mapping[str, Array],
        sizes: Sequence[int],
    ) -> list[InferResponse]:
        responses = []
        pieces = self._pieces(requests, outputs)
        for index, (request, stop, size) in enumerate(zip(requests, accumulate(sizes), sizes, strict=True)):
            tensors = []
            for name in requested[index]:
                output = outputs[name] if name in request.device_outputs else fetched[name]
                if name in pieces:
                    rows = _piece(output, pieces[name][index])
                else:
                    rows = output if len(sizes) == 1 else output[stop - size : stop]
                tensors.append(self._tensor(name, rows))
            responses.append(InferResponse(request.model_name, self._version, request.id, tensors))
        return responses

    def _pieces(self, requests: Sequence[InferRequest], outputs: Mapping[str, Output]) -> dict[str, list[Piece]]:
        """Return the part of each request of the outputs that are split by the shapes of an input."""
        return {
            name: scatter.pieces(requests, outputs[name].size)
            for name, scatter in self._batch_tensors.scattered.items()
            if name in outputs
        }

    def _check_rows(self, name: str, output: Output, total: int) -> None:
        if name in self._batch_tensors.scattered:
            return
        if self._batched and (not output.shape or output.shape[0] != total):
            raise internal(
                f"model '{self._config.name}', output '{name}': the model returned shape {list(output.shape)} "
                f"for a batch of {total}; the first dimension must be the batch"
            )

    def _tensor(self, name: str, output: Output) -> Tensor:
        spec = self._outputs.get(name) or self._states[name]
        if not output.shape:
            output = output.reshape((1,) * len(spec.dims))
        datatype = v2_name(spec.data_type)
        if isinstance(output, DeviceArray):
            return device_tensor(name, datatype, output)
        return Tensor(name, datatype, output)

    def _failed(self, request: InferRequest, error: Exception) -> InferResponse:
        serving_error = error if isinstance(error, ServingError) else failure(str(error) or repr(error), error)
        return InferResponse(request.model_name, self._version, request.id, error=explained(serving_error))


class BatchedInstance:
    """A loaded model that executes batches by a `Batcher`."""

    def __init__(self, config: ModelConfig, version: int, framework: Framework) -> None:
        self._name = config.name
        self._batcher: Batcher | None = Batcher(config, version, framework)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join the requests, run once, and split the outputs. Raises ServingError once the model is unloaded."""
        if self._batcher is None:
            raise internal(f"model '{self._name}' is unloaded")
        return self._batcher.execute(requests, responder)

    def close(self) -> None:
        """Release the model and its memory."""
        self._batcher = None


def together(
    requests: Sequence[InferRequest],
    batched: bool,
    shape_inputs: frozenset[str] = frozenset(),
    ragged: frozenset[str] = frozenset(),
) -> list[list[int]]:
    """Return the indexes of requests that can share a run, in order of arrival.

    Requests of one run have the same values of `shape_inputs`, and any shapes of `ragged` inputs.
    """
    if not batched or len(requests) == 1:
        return [[index] for index in range(len(requests))]
    groups: dict[object, list[int]] = {}
    for index, request in enumerate(requests):
        key = tuple(
            sorted(
                (name, (), b"") if name in ragged else _part(name, tensor, name in shape_inputs)
                for name, tensor in request.inputs.items()
            )
        )
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def joined_shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return the shape of tensors joined along the first dimension; one alone may have no dimension."""
    shape = tensors[0].shape
    return shape if len(tensors) == 1 else (sum(tensor.shape[0] for tensor in tensors), *shape[1:])


def _piece(output: Output, piece: Piece) -> Output:
    begin, end, shape = piece
    return output.reshape((output.size,))[begin:end].reshape(shape)


def _part(name: str, tensor: Tensor, is_shape: bool) -> tuple[str, tuple[int, ...], bytes]:
    return (name, tensor.shape, bytes(tensor.data)) if is_shape else (name, tensor.shape[1:], b"")


def state_outputs(config: ModelConfig) -> dict[str, ModelOutput]:
    """Return the outputs that carry a sequence's implicit state, by name: the scheduler always needs them."""
    return {
        state.output_name: ModelOutput(name=state.output_name, data_type=state.data_type, dims=state.dims)
        for state in config.sequence_batching.state
    }


def _host_outputs(
    requests: Sequence[InferRequest], requested: Sequence[Sequence[str]], outputs: Mapping[str, Output]
) -> dict[str, Output]:
    """Return the outputs that some request takes on the host."""
    names = {
        name
        for request, own in zip(requests, requested, strict=True)
        for name in own
        if name not in request.device_outputs
    }
    return {name: outputs[name] for name in outputs if name in names}


def _rows(tensors: Iterable[Tensor]) -> int:
    first = next(iter(tensors), None)
    return 1 if first is None or not first.shape else first.shape[0]
