"""Inputs and outputs: names, types, dims, reshapes and what only some platforms allow; warm-up samples."""

from collections.abc import Iterator, Sequence

from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelWarmup

from argosy_runtime.modelconfig.datatypes import element_size, v2_name
from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.shapes import INT64_MAX, WILDCARD, element_count, segment_counts, shape_text

_TENSORRT = "tensorrt_plan"
_IMAGE_FORMATS = (ModelInput.FORMAT_NHWC, ModelInput.FORMAT_NCHW)
_WILDCARD_NOTE = f"must be integer >= 1, or {WILDCARD} to indicate a variable-size dimension"


def check_tensors(config: ModelConfig) -> Iterator[Violation]:
    """Yield the violations of `input` and `output`."""
    for kind, specs in (("input", config.input), ("output", config.output)):
        seen: set[str] = set()
        for index, spec in enumerate(specs):
            path = f"{kind}[{index}]"
            for where, message in _check_tensor(config, kind, spec):
                yield Violation(f"{path}{where}", f"{message} for {config.name}")
            if spec.name and spec.name in seen:
                message = f"model {kind} '{spec.name}' is specified more than once for {config.name}"
                yield Violation(f"{path}.name", message)
            seen.add(spec.name)


def _check_tensor(config: ModelConfig, kind: str, spec: ModelInput) -> Iterator[tuple[str, str]]:
    begin = f"model {kind} '{spec.name}' "
    if not spec.name:
        yield ".name", f"model {kind} must specify 'name'"
    if spec.data_type == pb.TYPE_INVALID:
        yield ".data_type", f"{begin}must specify 'data_type'"
    if not spec.dims:
        yield ".dims", f"{begin}must specify 'dims'"
    for where, message in _check_shapes(spec, config.max_batch_size):
        yield where, message if message.startswith(("element count", "byte size")) else begin + message
    if kind == "input" and spec.format in _IMAGE_FORMATS and len(spec.dims) != 3:
        yield ".format", "model input NHWC/NCHW require 3 dims"
    yield from _check_platform(config.platform, kind, spec)


def _check_platform(platform: str, kind: str, spec: ModelInput) -> Iterator[tuple[str, str]]:
    if platform != _TENSORRT and spec.is_shape_tensor:
        yield ".is_shape_tensor", "shape tensors are only supported for TensorRT platform"
    if not spec.is_non_linear_format_io:
        return
    if platform != _TENSORRT:
        message = "Non-linear IO format is only supported for the TensorRT platform"
        yield ".is_non_linear_format_io", message
    elif len(spec.dims) != 3:
        yield ".is_non_linear_format_io", f"Non-linear IO format {kind} requires 3 dims"


def _check_shapes(spec: ModelInput, max_batch_size: int) -> Iterator[tuple[str, str]]:
    wrong = list(_check_dims(spec, max_batch_size))
    yield from wrong
    if spec.dims and not wrong:
        yield from _check_counts(spec)


def _check_dims(spec: ModelInput, max_batch_size: int) -> Iterator[tuple[str, str]]:
    if spec.HasField("reshape") and not spec.reshape.shape and max_batch_size == 0:
        yield (
            ".reshape.shape",
            "cannot have empty reshape for non-batching model as scalar tensors are not supported",
        )
    for index in _impossible(spec.dims):
        yield f".dims[{index}]", f"dimension {_WILDCARD_NOTE}"
    for index in _impossible(spec.reshape.shape):
        yield f".reshape.shape[{index}]", f"reshape dimensions {_WILDCARD_NOTE}"


def _impossible(dims: Sequence[int]) -> list[int]:
    return [index for index, dim in enumerate(dims) if dim < 1 and dim != WILDCARD]


def _check_counts(spec: ModelInput) -> Iterator[tuple[str, str]]:
    sides = [(".dims", "dims", list(spec.dims))]
    if spec.HasField("reshape"):
        sides.append((".reshape.shape", "reshape", list(spec.reshape.shape)))
    too_large = [(where, label) for where, label, dims in sides if element_count(dims) > INT64_MAX]
    for where, label in too_large:
        yield where, f"element count for tensor '{spec.name} {label}' exceeds maximum size of {INT64_MAX}"
    size = (element_size(v2_name(spec.data_type)) if spec.data_type else None) or 1
    for where, label, dims in sides:
        if element_count(dims) <= INT64_MAX < element_count(dims) * size:
            yield where, f"byte size for tensor '{spec.name} {label}' exceeds maximum size of {INT64_MAX}"
    if spec.HasField("reshape") and not too_large:
        message = _reshape_mismatch(list(spec.dims), list(spec.reshape.shape))
        if message:
            yield ".reshape.shape", message


def _reshape_mismatch(dims: Sequence[int], target: Sequence[int]) -> str | None:
    before, after = element_count(dims), element_count(target)
    # An empty reshape makes a scalar per batch entry: it fits exactly one element.
    if before != after and not (after == 0 and before == 1):
        return "has different size for dims and reshape"
    if before != WILDCARD:
        return None
    parts, new_parts = segment_counts(dims), segment_counts(target)
    if len(parts) != len(new_parts):
        return "has different number of variable-size dimensions for dims and reshape"
    return None if parts == new_parts else "has different size for dims and reshape"


def check_warmup(config: ModelConfig) -> Iterator[Violation]:
    """Yield the violations of `model_warmup`. A sample of batch size 0 is skipped by the server, and here."""
    for index, sample in enumerate(config.model_warmup):
        if sample.batch_size == 0:
            continue
        for name in sorted(sample.inputs):
            path = f'model_warmup[{index}].inputs["{name}"]'
            yield from _check_input(config, path, name, sample.inputs[name])


def _check_input(config: ModelConfig, path: str, name: str, sample: ModelWarmup) -> Iterator[Violation]:
    if sample.data_type == pb.TYPE_INVALID:
        message = f"warmup setting expects input '{name}' to have data_type set for {config.name}"
        yield Violation(f"{path}.data_type", message)
    if WILDCARD in sample.dims:
        message = f"warmup setting expects all variable-size dimensions are specified for input '{name}'"
        yield Violation(f"{path}.dims", message)
    elif any(dim < 0 for dim in sample.dims):
        message = f"tensor '{name}' contains an invalid dimension {shape_text(sample.dims)}"
        yield Violation(f"{path}.dims", message)
    if sample.WhichOneof("input_data_type") is None:
        message = f"warmup setting expects input '{name}' to have input_data_type set"
        yield Violation(path, message)
