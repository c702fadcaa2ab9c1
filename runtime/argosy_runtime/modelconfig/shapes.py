"""Shapes: how they are written, compared and checked.

A shape is a sequence of dimensions; -1 is a variable one. `dims` are a config's, without the batch; a "full"
shape has the batch first wherever `max_batch_size` is above 0.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from tritonclient.grpc.model_config_pb2 import ModelConfig

from . import datatypes
from .input_order import input_order

_Value = TypeVar("_Value")

WILDCARD = -1
INT64_MAX = 2**63 - 1

# What a tensor may have at the most. Elements are counted with an empty dimension as 1, so that an empty tensor stays
# one that every framework can make, batched too.
MOST_DIMENSIONS = 32
MOST_ELEMENTS = 2**40

_BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended "
    "to each input shape. If you want to specify the full shape including the batch dim in your input dims "
    "config, try setting max_batch_size to zero. See the model configuration docs for more info on "
    "max_batch_size."
)


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as Triton writes it: [-1,16]."""
    return f"[{','.join(str(dim) for dim in shape)}]"


def size_problem(shape: Sequence[int]) -> str | None:
    """Return why a tensor of this shape, of any type, is too large; None where it is not."""
    if len(shape) > MOST_DIMENSIONS:
        return f"shape {shape_text(shape)} has {len(shape)} dimensions, more than {MOST_DIMENSIONS}"
    count = 1
    for dim in shape:
        if not 0 <= dim <= INT64_MAX:
            return f"shape {shape_text(shape)} contains one or more invalid dimensions"
        count *= dim or 1
    if count <= MOST_ELEMENTS:
        return None
    most = INT64_MAX if math.prod(shape) > INT64_MAX else MOST_ELEMENTS
    return f"shape {shape_text(shape)} causes total element count to exceed maximum size of {most}"


def element_count(shape: Sequence[int]) -> int:
    """Return the elements of a shape: -1 with a variable dimension; as Triton counts, 0 for an empty one."""
    if WILDCARD in shape:
        return WILDCARD
    return math.prod(shape) if shape else 0


def segment_counts(shape: Sequence[int]) -> list[int]:
    """Return the element counts of the runs of fixed dimensions between variable ones: [2,4,-1,6] is [8, 6]."""
    counts = [1]
    for dim in shape:
        if dim == WILDCARD:
            counts.append(1)
        else:
            counts[-1] *= dim
    return counts


def full_shape(dims: Sequence[int], max_batch_size: int) -> tuple[int, ...]:
    """Return the dims with the variable batch in front where the model batches."""
    return (WILDCARD, *dims) if max_batch_size > 0 else tuple(dims)


def compatible(left: Sequence[int], right: Sequence[int]) -> bool:
    """Return whether two shapes have the same rank, and each pair of dimensions is equal or has a variable one."""
    return len(left) == len(right) and all(a == b or WILDCARD in (a, b) for a, b in zip(left, right, strict=True))


def tensors_fit(left: Sequence[int], left_batch: int, right: Sequence[int], right_batch: int) -> bool:
    """Return whether one ensemble tensor can be both: dims agree, or full shapes (a batch can be a dim)."""
    return compatible(left, right) or compatible(full_shape(left, left_batch), full_shape(right, right_batch))


def reshape(dims: Sequence[int], target: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return a tensor's shape after its config's `reshape`: variable sizes of `shape` fill those of `target`.

    All three are without the batch; `shape` fits `dims`, and the two have as many variable dimensions.
    """
    variable = iter([size for dim, size in zip(dims, shape, strict=True) if dim == WILDCARD])
    return tuple(next(variable) if dim == WILDCARD else dim for dim in target)


def check_input_shape(
    name: str, model: str, dims: Sequence[int], max_batch_size: int, shape: Sequence[int], has_rows: bool = True
) -> str | None:
    """Return the error of a request's full `shape` for an input, in Triton's words; None where it fits.

    A shape tensor has no rows, though the message says so of a model that batches.
    """
    if max_batch_size > 0 and has_rows and not shape:
        return f"input '{name}' has no shape but model requires batch dimension for '{model}'"
    inner = shape[1:] if max_batch_size > 0 and has_rows else shape
    if len(inner) == len(dims) and any(size < 0 for size in inner):
        return (
            f"All input dimensions should be specified for input '{name}' for model '{model}', got {shape_text(shape)}"
        )
    if len(inner) == len(dims) and compatible(dims, inner):
        return None
    expected = shape_text(full_shape(dims, max_batch_size))
    note = _BATCH_NOTE if max_batch_size > 0 else ""
    return (
        f"unexpected shape for input '{name}' for model '{model}'. Expected {expected}, got {shape_text(shape)}. {note}"
    )


def first_fault(
    config: ModelConfig,
    log_prefix: str,
    inputs: Mapping[str, tuple[str, Sequence[int]]],
    outputs: Iterable[str],
    faults: Mapping[str, str],
) -> str | None:
    """Return the error of a request in Triton's words; None where it fits the model.

    Of several it is the one that Triton names. `inputs` are those of `check_request`, `outputs` the requested ones;
    `faults` say by name which inputs have data that does not fit their shapes.
    """
    declared = {output.name for output in config.output}
    unknown = next((name for name in outputs if name not in declared), None)
    if unknown is not None:
        return f"unexpected inference output '{unknown}' for model '{config.name}'"
    text = unknown_input(config, inputs)
    if text is not None:
        # Triton's messages about names have no request's prefix.
        return text
    text = check_request(config, inputs, faults)
    return text if text is None or text in faults.values() else log_prefix + text


def check_request(
    config: ModelConfig,
    inputs: Mapping[str, tuple[str, Sequence[int]]],
    faults: Mapping[str, str] = MappingProxyType({}),
) -> str | None:
    """Return the error of a request's inputs (name → V2 datatype and full shape); None where all fit.

    The order of checks is Triton's: how many, which names, the batch, then datatype, shape and data of each.
    """
    inputs = _in_order(inputs)
    wrong = _check_count(config, inputs) or unknown_input(config, inputs) or _check_required(config, inputs)
    if wrong:
        return wrong
    specs = {spec.name: spec for spec in config.input}
    batching = config.max_batch_size > 0
    batched = {n: s for n, (_, s) in inputs.items() if not specs[n].is_shape_tensor} if batching else {}
    wrong = _check_batch(config, batched)
    if wrong:
        return wrong
    for name, (datatype, shape) in inputs.items():
        if problem := size_problem(shape):
            return f"invalid shape for input '{name}': {problem}"
        expected = datatypes.v2_name(specs[name].data_type)
        if datatype != expected:
            return f"inference input '{name}' data-type is '{datatype}', but model '{config.name}' expects '{expected}'"
        has_rows = name in batched or not batching
        wrong = check_input_shape(name, config.name, specs[name].dims, config.max_batch_size, shape, has_rows)
        if wrong:
            return wrong
        if name in batched and shape[0] == 0:
            return f"inference request batch-size must be >= 1 for '{config.name}'"
        if name in faults:
            return faults[name]
    return None


def unknown_input(config: ModelConfig, inputs: Mapping[str, object]) -> str | None:
    """Return the error of an input that the model does not declare; None also for a wrong number, which comes first."""
    specs = {spec.name for spec in config.input}
    unknown = next((name for name in _in_order(inputs) if name not in specs), None)
    if unknown is None or _check_count(config, inputs):
        return None
    return f"unexpected inference input '{unknown}' for model '{config.name}'"


def _in_order(inputs: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the inputs of a request in the order in which Triton checks them."""
    return {name: inputs[name] for name in input_order(inputs)}


def _required(config: ModelConfig) -> list[str]:
    return [spec.name for spec in config.input if not spec.optional]


def _check_count(config: ModelConfig, inputs: Mapping[str, object]) -> str | None:
    if len(_required(config)) <= len(inputs) <= len(config.input):
        return None
    return _wrong_inputs(config, inputs)


def _check_required(config: ModelConfig, inputs: Mapping[str, object]) -> str | None:
    """Return the error of a missing required input. An optional one is no substitute, though Triton only counts."""
    return None if all(name in inputs for name in _required(config)) else _wrong_inputs(config, inputs)


def _wrong_inputs(config: ModelConfig, inputs: Mapping[str, object]) -> str:
    required, most = _required(config), len(config.input)
    expected = f"{most} inputs" if len(required) == most else None
    begin = f"expected {expected}" if expected else f"expected number of inputs between {len(required)} and {most}"
    return (
        f"{begin} but got {len(inputs)} inputs for model '{config.name}'. "
        f"Got input(s) {_names(list(inputs))}, "
        f"but missing required input(s) {_names([name for name in required if name not in inputs])}. "
        "Please provide all required input(s)."
    )


def _names(names: Sequence[str]) -> str:
    return f"[{','.join(_quoted(name) for name in names)}]"


def _quoted(name: str) -> str:
    return f"'{name}'"


def _check_batch(config: ModelConfig, shapes: Mapping[str, Sequence[int]]) -> str | None:
    batch: int | None = None
    for name, shape in shapes.items():
        if not shape:
            return f"input '{name}' has no shape but model requires batch dimension for '{config.name}'"
        if batch is None:
            batch = shape[0]
        elif shape[0] != batch:
            return f"input '{name}' batch size does not match other inputs for '{config.name}'"
    if batch is not None and batch > config.max_batch_size:
        return f"inference request batch-size must be <= {config.max_batch_size} for '{config.name}'"
    return None
