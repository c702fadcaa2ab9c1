"""Sequence batching: the strategies' own settings, and implicit state with its initial values."""

from collections.abc import Iterator

from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.shapes import WILDCARD

_PATH = "sequence_batching"
_NOT_ON_GPU = (pb.ModelInstanceGroup.KIND_CPU, pb.ModelInstanceGroup.KIND_MODEL)


def check_sequence_batching(config: ModelConfig) -> Iterator[Violation]:
    """Check the response cache, the preferred sizes of `oldest`, and the share of slots of `direct`."""
    if not config.HasField("sequence_batching"):
        return
    if config.response_cache.enable:
        yield Violation("response_cache.enable", sequences_cached(config.name))
    strategy = config.sequence_batching.WhichOneof("strategy_choice")
    if strategy == "oldest":
        yield from _check_oldest(config)
    if strategy == "direct":
        yield from _check_direct(config)


def sequences_cached(name: str) -> str:
    """Return the message for a model, or an ensemble with one, that caches answers which a sequence decides."""
    return (
        f"Response Cache does not currently support model {name} with sequence batching scheduler. Please disable the "
        "response cache."
    )


def _check_oldest(config: ModelConfig) -> Iterator[Violation]:
    oldest = config.sequence_batching.oldest
    for index, size in enumerate(oldest.preferred_batch_size):
        path = f"{_PATH}.oldest.preferred_batch_size[{index}]"
        if size <= 0:
            message = f"sequence batching preferred batch size must be positive for {config.name}"
            yield Violation(path, message)
        elif size > config.max_batch_size:
            message = f"sequence batching preferred batch size must be <= max batch size for {config.name}"
            yield Violation(path, message)


def _check_direct(config: ModelConfig) -> Iterator[Violation]:
    # `not (… <= …)` so that NaN is refused as well.
    if not 0.0 <= config.sequence_batching.direct.minimum_slot_utilization <= 1.0:
        yield Violation(
            f"{_PATH}.direct.minimum_slot_utilization",
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {config.name}",
        )


def check_states(config: ModelConfig) -> Iterator[Violation]:
    """Check that every state has two names, a type and at most one initial value, which fits it."""
    if not config.HasField("sequence_batching"):
        return
    started: set[str] = set()
    for index, state in enumerate(config.sequence_batching.state):
        path = f"sequence_batching.state[{index}]"
        yield from _check_declared(config, path, state)
        yield from _check_memory(config, path, state)
        if len(state.initial_state) > 1:
            yield Violation(
                f"{path}.initial_state",
                f"initial_state field for state input '{state.input_name}' must contain exactly one or zero "
                f"element. Found '{len(state.initial_state)}' elements.",
            )
        elif state.initial_state:
            if state.input_name in started:
                message = f"State input name '{state.input_name}' specified more than once."
                yield Violation(f"{path}.input_name", message)
            started.add(state.input_name)
            yield from _check_initial(f"{path}.initial_state[0]", state)


def _check_declared(config: ModelConfig, path: str, state: ModelSequenceBatching) -> Iterator[Violation]:
    for field in ("input_name", "output_name"):
        if not getattr(state, field):
            yield Violation(f"{path}.{field}", f"sequence batching state must specify '{field}' for {config.name}")
    if state.data_type == pb.TYPE_INVALID:
        message = f"sequence batching state '{state.input_name}' must specify 'data_type' for {config.name}"
        yield Violation(f"{path}.data_type", message)


def _check_memory(config: ModelConfig, path: str, state: ModelSequenceBatching) -> Iterator[Violation]:
    """Check what Triton checks at the first request of each sequence, and only logs."""
    if not state.use_growable_memory:
        return
    if not state.use_same_buffer_for_input_output:
        yield Violation(
            f"{path}.use_growable_memory",
            "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name "
            f"'{state.input_name}'.",
        )
    elif any(group.kind in _NOT_ON_GPU for group in config.instance_group):
        yield Violation(
            f"{path}.use_growable_memory",
            "'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change the "
            "instance type to KIND_GPU or set 'use_growable_memory' to false for state input "
            f"'{state.input_name}'",
        )


def _check_initial(path: str, state: ModelSequenceBatching) -> Iterator[Violation]:
    initial, name = state.initial_state[0], state.input_name
    if initial.data_type != state.data_type:
        yield Violation(
            f"{path}.data_type",
            f"The data type used for 'initial_state' field of state '{name}' does not match the state data type.",
        )
    if not initial.name:
        message = f"Field 'name' must be set when using initial_state for state input '{name}'."
        yield Violation(f"{path}.name", message)
    yield from _check_dims(path, state)
    if initial.WhichOneof("state_data") is None:
        message = f"initial_state setting expects state'{name}' to have state_data set"
        yield Violation(path, message)


def _check_dims(path: str, state: ModelSequenceBatching) -> Iterator[Violation]:
    initial, name = state.initial_state[0], state.input_name
    if len(initial.dims) != len(state.dims):
        yield Violation(
            f"{path}.dims",
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state "
            f"input '{name}'. {len(initial.dims)} != {len(state.dims)}",
        )
        return
    for index, (initial_dim, declared) in enumerate(zip(initial.dims, state.dims, strict=True)):
        if initial_dim == WILDCARD:
            message = f"'initial_state' field for state input name '{name}' contains variable dimensions."
            yield Violation(f"{path}.dims[{index}]", message)
        elif declared not in (WILDCARD, initial_dim):
            yield Violation(
                f"{path}.dims[{index}]",
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description. "
                f"{initial_dim} != {declared}",
            )
