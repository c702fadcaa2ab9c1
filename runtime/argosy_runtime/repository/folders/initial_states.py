"""Initial values of implicit states, from a model's `initial_state` folder."""

from math import prod
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Tensor
from argosy_runtime.modelconfig.datatypes import element_size, v2_name
from argosy_runtime.tensors import StringsError, raw_tensor, split_strings

from .layout import INITIAL_STATE_FOLDER, inside


def initial_states(config: ModelConfig, model_dir: Path) -> dict[str, Tensor]:
    """Return the initial values that a checked configuration names, by the state's input.

    Reads files, so not on the event loop. Raises ServingError.
    """
    states = [state for state in config.sequence_batching.state if state.initial_state]
    return {state.input_name: _initial(state, config.max_batch_size > 0, model_dir) for state in states}


def _initial(state: ModelSequenceBatching, batches: bool, model_dir: Path) -> Tensor:
    initial = state.initial_state[0]
    shape = (1, *initial.dims) if batches else tuple(initial.dims)
    datatype = v2_name(state.data_type)
    size = (element_size(datatype) or 4) * prod(shape)
    if initial.WhichOneof("state_data") != "data_file":
        return raw_tensor(state.input_name, datatype, shape, bytes(size))
    data = _read(inside(model_dir / INITIAL_STATE_FOLDER, initial.data_file))
    if datatype == "BYTES":
        _check_strings(initial.data_file, data, prod(shape))
        return raw_tensor(state.input_name, datatype, shape, data)
    if len(data) < size:
        raise invalid(
            f"initial_state setting expects {size} bytes, but the data provided from {initial.data_file}only has "
            f"{len(data)} bytes."
        )
    return raw_tensor(state.input_name, datatype, shape, data[:size])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise internal(f"failed to open text file for read {path}: {error.strerror}") from error


def _check_strings(name: str, data: bytes, count: int) -> None:
    try:
        strings = len(split_strings(data))
    except StringsError as error:
        raise invalid(f"initial_state data of {name}: {error}") from None
    if strings != count:
        raise invalid(f"initial_state setting expects {count} strings, but the data provided from {name} has {strings}")
