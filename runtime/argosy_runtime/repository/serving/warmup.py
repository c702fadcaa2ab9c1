"""model_warmup: the requests that every instance answers before the first client may."""

from pathlib import Path

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelWarmup

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype, v2_name
from argosy_runtime.repository.folders.layout import WARMUP_FOLDER, inside
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.tensors import StringsError, split_strings, string_array


def batches(config: ModelConfig, model_dir: Path, admission: Admission) -> list[list[InferRequest]]:
    """Return the warm-up executions, in order: a sample of batch size n is n requests in one batch.

    A sample is checked like a client's request, and converted to what the model sees. One of batch size 0 is
    skipped, as in Triton. Reads files, so not on the event loop. Raises ServingError.
    """
    result: list[list[InferRequest]] = []
    for sample in config.model_warmup:
        if not sample.batch_size:
            continue
        inputs = {name: _tensor(name, spec, config, model_dir) for name, spec in sample.inputs.items()}
        of_sequences = {name: inputs.pop(name) for name in _of_sequences(config) & inputs.keys()}
        one = InferRequest(config.name, inputs, id=f"warmup {sample.name}")
        admission.admit(one)
        one.inputs = {**one.inputs, **of_sequences}
        result += [[one] * sample.batch_size] * max(1, sample.count)
    return result


def _of_sequences(config: ModelConfig) -> set[str]:
    """Return the inputs that a model has for sequences, which a sample names like the others."""
    batching = config.sequence_batching
    return {control.name for control in batching.control_input} | {state.input_name for state in batching.state}


def _tensor(name: str, spec: ModelWarmup.Input, config: ModelConfig, model_dir: Path) -> Tensor:
    datatype = v2_name(spec.data_type)
    has_rows = config.max_batch_size and not any(one.is_shape_tensor for one in config.input if one.name == name)
    shape = (1, *spec.dims) if has_rows else tuple(spec.dims)
    source = spec.WhichOneof("input_data_type")
    if source == "input_data_file":
        return Tensor(
            name, datatype, _from_file(inside(model_dir / WARMUP_FOLDER, spec.input_data_file), datatype, shape)
        )
    if source == "random_data":
        return Tensor(name, datatype, _random(datatype, shape))
    return Tensor(name, datatype, _zeros(datatype, shape))


def _zeros(datatype: str, shape: tuple[int, ...]) -> Array:
    if datatype == "BYTES":
        return np.full(shape, b"", dtype=np.object_)
    return np.zeros(shape, dtype=numpy_dtype(datatype))


def _random(datatype: str, shape: tuple[int, ...]) -> Array:
    if datatype == "BYTES":
        return _zeros(datatype, shape)
    dtype = numpy_dtype(datatype)
    generator = np.random.default_rng(0)
    if dtype.kind in "iu":
        return generator.integers(0, 127, size=shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, size=shape).astype(dtype)
    return generator.random(size=shape).astype(dtype)


def _from_file(path: Path, datatype: str, shape: tuple[int, ...]) -> Array:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise invalid(f"cannot read warm-up data {path}: {error.strerror}") from error
    array = _array(path, datatype, data)
    if array.size != int(np.prod(shape)):
        raise invalid(
            f"warm-up data {path} holds {array.size} elements, shape {list(shape)} needs {int(np.prod(shape))}"
        )
    return array.reshape(shape)


def _array(path: Path, datatype: str, data: bytes) -> Array:
    if datatype != "BYTES":
        return np.frombuffer(data, dtype=numpy_dtype(datatype))
    try:
        elements = split_strings(data)
    except StringsError as error:
        raise invalid(f"warm-up data {path}: {error}") from None
    return string_array(elements, (len(elements),))
