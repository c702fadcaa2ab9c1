"""Implicit state: what a model returns for a sequence as a state is an input of that sequence's next request."""

from collections.abc import Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.modelconfig.datatypes import element_size, v2_name
from argosy_runtime.modelconfig.shapes import WILDCARD
from argosy_runtime.tensors import raw_tensor

from .sequence import Sequence


class ImplicitStates:
    """The implicit state of a model's sequences. `initial` has the values that the configuration names, by input.

    `use_same_buffer_for_input_output` and `use_growable_memory` are about memory that a backend writes; here each
    state is a tensor of its own, which grows as the model lets it.
    """

    def __init__(self, config: ModelConfig, initial: Mapping[str, Tensor]) -> None:
        self._initial = initial
        self._inputs = {state.output_name: state.input_name for state in config.sequence_batching.state}
        self._unset = [_unset(state, config.max_batch_size > 0) for state in config.sequence_batching.state]
        # A state that is an output, too, goes to the client as well.
        self._outputs = frozenset([output.name for output in config.output])

    def inputs(self, sequence: Sequence, start: bool) -> list[Tensor]:
        """Return the state of a sequence as inputs of its next request; at its start the initial one."""
        if not self._inputs:
            return []
        states = sequence.states
        if states is None or start:
            states = sequence.states = {
                output: self._initial.get(unset.name, unset)
                for output, unset in zip(self._inputs, self._unset, strict=True)
            }
        return list(states.values())

    def take(self, sequence: Sequence, response: InferResponse) -> None:
        """Take the state out of a response. What a model does not return stays as it is."""
        if not self._inputs or response.error is not None or sequence.states is None:
            return
        outputs: list[Tensor] = []
        for tensor in response.outputs:
            name = self._inputs.get(tensor.name)
            if name is not None:
                # Copied, because the memory of a batch must not be kept for as long as a sequence may be idle.
                sequence.states[tensor.name] = raw_tensor(name, tensor.datatype, tensor.shape, bytes(tensor.data))
            if name is None or tensor.name in self._outputs:
                outputs.append(tensor)
        if len(outputs) < len(response.outputs):
            response.outputs = outputs


def _unset(state: ModelSequenceBatching, batches: bool) -> Tensor:
    """Return a state without an initial value: zeros or empty strings, with 1 in place of each variable dimension."""
    dims = [1 if dim == WILDCARD else dim for dim in state.dims]
    shape = (1, *dims) if batches else tuple(dims)
    datatype = v2_name(state.data_type)
    size = element_size(datatype) or 4
    for dim in shape:
        size *= dim
    return raw_tensor(state.input_name, datatype, shape, bytes(size))
