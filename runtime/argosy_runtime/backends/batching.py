"""Many requests, one run: which requests go together, their inputs joined along the batch, outputs split
again.

Used by the frameworks whose models take and give whole arrays. Requests of a batch that differ in their
inputs' names or inner shapes run apart. Where `max_batch_size` is 0 every request is a run of its own and
shapes are left as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic_ns
from typing import Any, Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelOutput

from argosy_runtime.backends.contract import ExecutionTimes, Responder
from argosy_runtime.device_arrays import DeviceArray
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.faults import explained, failure
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig import v2_name
from argosy_runtime.tensors import device_tensor

Output = Array | DeviceArray
"""What a model gives: on the host, or where the framework left it."""


class Framework(Protocol):
    """How one framework joins, runs and brings home. On the instance's own thread, in this order."""

    def batch(self) -> AbstractContextManager[None]:
        """Around one run and all that belongs to it; when it is left the device is through with the batch."""

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Any:
        """Return an input for `run`: these tensors, one of each request, joined along the first dimension."""

    def run(self, inputs: Mapping[str, Any], wanted: Sequence[str]) -> Mapping[str, Output]:
        """Run the model once; the outputs `wanted`, by name."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Bring outputs to the host, all together, into memory that no later batch touches."""


@dataclass(slots=True)
class Clock:
    """Nanoseconds spent so far."""

    inputs: int = 0
    infer: int = 0
    outputs: int = 0

    def times(self) -> ExecutionTimes:
        """As the contract wants them."""
        return ExecutionTimes(self.inputs, self.infer, self.outputs)


class Batcher:
    """Answers batches for one model through its framework."""

    def __init__(self, config: ModelConfig, version: int, framework: Framework) -> None:
        self._config = config
        self._version = str(version)
        self._framework = framework
        self._batched = config.max_batch_size > 0
        self._outputs = {output.name: output for output in config.output}
        self._states = state_outputs(config)
        # Of one batch they have the same values, and no row of their own.
        self._shape_inputs = frozenset(given.name for given in config.input if given.is_shape_tensor)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Answer every request. A run that fails fails only its own requests."""
        clock = Clock()
        for group in together(requests, self._batched, self._shape_inputs):
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
        wanted = [self._wanted(request) for request in requests]
        with self._framework.batch():
            begun = monotonic_ns()
            inputs = {name: self._gather(name, requests) for name in requests[0].inputs}
            joined = monotonic_ns()
            outputs = self._framework.run(inputs, sorted(set().union(*wanted)))
            finished = monotonic_ns()
            for name, output in outputs.items():
                self._check_rows(name, output, sum(sizes))
            fetched = self._framework.fetch(_for_the_host(requests, wanted, outputs))
        responses = self._split(requests, wanted, outputs, fetched, sizes)
        clock.inputs += joined - begun
        clock.infer += finished - joined
        clock.outputs += monotonic_ns() - finished
        return responses

    def _gather(self, name: str, requests: Sequence[InferRequest]) -> Any:
        return self._framework.gather(name, [request.inputs[name] for request in requests])

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

    def _wanted(self, request: InferRequest) -> list[str]:
        return list(dict.fromkeys([*(request.requested_outputs or self._outputs), *self._states]))

    def _split(
        self,
        requests: Sequence[InferRequest],
        wanted: Sequence[Sequence[str]],
        outputs: Mapping[str, Output],
        fetched: Mapping[str, Array],
        sizes: Sequence[int],
    ) -> list[InferResponse]:
        responses = []
        for request, names, stop, size in zip(requests, wanted, accumulate(sizes), sizes, strict=True):
            tensors = []
            for name in names:
                output = outputs[name] if name in request.device_outputs else fetched[name]
                whole = len(sizes) == 1
                tensors.append(self._tensor(name, output if whole else output[stop - size : stop]))
            responses.append(InferResponse(request.model_name, self._version, request.id, tensors))
        return responses

    def _check_rows(self, name: str, output: Output, total: int) -> None:
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
        known = error if isinstance(error, ServingError) else failure(str(error) or repr(error), error)
        return InferResponse(request.model_name, self._version, request.id, error=explained(known))


def together(
    requests: Sequence[InferRequest], batched: bool, shape_inputs: frozenset[str] = frozenset()
) -> list[list[int]]:
    """Return the indexes of requests that can be one run, in order of arrival. `shape_inputs` must have the same
    values.
    """
    if not batched or len(requests) == 1:
        return [[index] for index in range(len(requests))]
    groups: dict[object, list[int]] = {}
    for index, request in enumerate(requests):
        key = tuple(sorted(_part(name, tensor, name in shape_inputs) for name, tensor in request.inputs.items()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _part(name: str, tensor: Tensor, is_shape: bool) -> tuple[str, tuple[int, ...], bytes]:
    return (name, tensor.shape, bytes(tensor.data)) if is_shape else (name, tensor.shape[1:], b"")


def state_outputs(config: ModelConfig) -> dict[str, ModelOutput]:
    """Return the outputs that carry a sequence's implicit state, by name.

    Always computed: the scheduler needs them.
    """
    return {
        state.output_name: ModelOutput(name=state.output_name, data_type=state.data_type, dims=state.dims)
        for state in config.sequence_batching.state
    }


def _for_the_host(
    requests: Sequence[InferRequest], wanted: Sequence[Sequence[str]], outputs: Mapping[str, Output]
) -> dict[str, Output]:
    """Return those of the outputs that some request wants there."""
    names = {
        name
        for request, its in zip(requests, wanted, strict=True)
        for name in its
        if name not in request.device_outputs
    }
    return {name: outputs[name] for name in outputs if name in names}


def _rows(tensors: Iterable[Tensor]) -> int:
    first = next(iter(tensors), None)
    return 1 if first is None or not first.shape else first.shape[0]
