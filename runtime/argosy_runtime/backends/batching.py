"""Many requests, one run: which requests go together, their inputs joined along the batch, outputs split
again.

Used by the frameworks whose models take and give whole arrays. Requests of a batch that differ in their
inputs' names or inner shapes run apart. Where `max_batch_size` is 0 every request is a run of its own and
shapes are left as they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic_ns

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelOutput

from argosy_runtime.backends.contract import ExecutionTimes, Responder
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig import v2_name

Run = Callable[[Mapping[str, Array], Sequence[str]], Mapping[str, Array]]
"""Runs the model once: inputs by name and the outputs wanted, to outputs by name."""


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
    """Answers batches for one model by calling its `run`."""

    def __init__(self, config: ModelConfig, version: int, run: Run) -> None:
        self._config = config
        self._version = str(version)
        self._run = run
        self._batched = config.max_batch_size > 0
        self._outputs = {output.name: output for output in config.output}
        self._states = state_outputs(config)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Answer every request. A run that fails fails only its own requests."""
        clock = Clock()
        for group in together(requests, self._batched):
            members = [requests[index] for index in group]
            try:
                responses = self._answers(members, clock)
            except Exception as error:
                responses = [self._failed(request, error) for request in members]
            for index, response in zip(group, responses, strict=True):
                responder.send(index, response)
        return clock.times()

    def _answers(self, requests: Sequence[InferRequest], clock: Clock) -> list[InferResponse]:
        begun = monotonic_ns()
        inputs, sizes = self._gathered(requests)
        wanted = [self._wanted(request) for request in requests]
        joined = monotonic_ns()
        outputs = self._run(inputs, sorted(set().union(*wanted)))
        finished = monotonic_ns()
        responses = self._split(requests, wanted, outputs, sizes)
        clock.inputs += joined - begun
        clock.infer += finished - joined
        clock.outputs += monotonic_ns() - finished
        return responses

    def _gathered(self, requests: Sequence[InferRequest]) -> tuple[dict[str, Array], list[int]]:
        shaped = [{name: tensor.array for name, tensor in request.inputs.items()} for request in requests]
        if not self._batched:
            return shaped[0], [1]
        sizes = [_rows(arrays.values()) for arrays in shaped]
        self._check_total(sum(sizes))
        if len(shaped) == 1:
            return shaped[0], sizes
        return {name: np.concatenate([arrays[name] for arrays in shaped]) for name in shaped[0]}, sizes

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
        outputs: Mapping[str, Array],
        sizes: Sequence[int],
    ) -> list[InferResponse]:
        parts = {name: self._parts(name, array, sizes) for name, array in outputs.items()}
        return [
            InferResponse(
                request.model_name,
                self._version,
                request.id,
                [self._tensor(name, parts[name][place]) for name in wanted[place]],
            )
            for place, request in enumerate(requests)
        ]

    def _parts(self, name: str, array: Array, sizes: Sequence[int]) -> list[Array]:
        if not self._batched:
            return [array]
        total = sum(sizes)
        if array.ndim == 0 or array.shape[0] != total:
            raise internal(
                f"model '{self._config.name}', output '{name}': the model returned shape {list(array.shape)} "
                f"for a batch of {total}; the first dimension must be the batch"
            )
        return np.split(array, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else [array]

    def _tensor(self, name: str, array: Array) -> Tensor:
        spec = self._outputs.get(name) or self._states[name]
        if array.ndim == 0:
            array = array.reshape([1] * len(spec.dims))
        return Tensor(name, v2_name(spec.data_type), array)

    def _failed(self, request: InferRequest, error: Exception) -> InferResponse:
        known = error if isinstance(error, ServingError) else internal(str(error) or repr(error))
        return InferResponse(request.model_name, self._version, request.id, error=known)


def together(requests: Sequence[InferRequest], batched: bool) -> list[list[int]]:
    """The indexes of requests that can be one run, in order of arrival."""
    if not batched:
        return [[index] for index in range(len(requests))]
    groups: dict[object, list[int]] = {}
    for index, request in enumerate(requests):
        key = tuple(sorted((name, tensor.shape[1:]) for name, tensor in request.inputs.items()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def state_outputs(config: ModelConfig) -> dict[str, ModelOutput]:
    """The outputs that carry a sequence's implicit state, by name.

    Always computed: the scheduler needs them.
    """
    return {
        state.output_name: ModelOutput(name=state.output_name, data_type=state.data_type, dims=state.dims)
        for state in config.sequence_batching.state
    }


def _rows(arrays: Iterable[Array]) -> int:
    first = next(iter(arrays), None)
    return 1 if first is None or first.ndim == 0 else first.shape[0]
