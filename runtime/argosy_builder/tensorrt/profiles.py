"""Optimization profiles from what is declared: dims, the largest batch, the batch to be fastest at. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_builder.contract import BuildError
from argosy_builder.options import invalid

Shape = list[int]
Triple = tuple[Shape, Shape, Shape]
"""Least, best, most."""


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """An input of the network: `shape` with the batch, -1 for what varies, with the ONNX file's `names` for it.

    `is_shape`: its values decide shapes. `data_type` as a configuration calls it, "" where it has no name for it.
    """

    name: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    is_shape: bool = False
    data_type: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as TensorRT takes it: shapes by input, and values of shape tensors."""

    shapes: Mapping[str, Triple]
    values: Mapping[str, Triple]


def profiles_of(
    inputs: Sequence[NetworkInput],
    declared: Sequence[TensorSpec],
    max_batch_size: int,
    batch_sizes: Sequence[int],
    requested: Sequence[Mapping[str, Mapping[str, Shape]]],
) -> list[Profile]:
    """Return the profiles to build for; none where nothing varies.

    There is one from what is declared, unless some are `requested`: batches from 1 to the largest, fastest at the
    largest of `batch_sizes`. What a requested one leaves out is as declared. Raises BuildError that names the input and
    what to do.
    """
    _check_batches(inputs, max_batch_size)
    _check_names(inputs, requested)
    if not requested and not any(-1 in tensor.shape or tensor.is_shape for tensor in inputs):
        return []
    dims = {spec.name: spec.dims for spec in declared}
    best = max((size for size in batch_sizes if size <= max_batch_size), default=max_batch_size)
    return [_profile(inputs, dims, max_batch_size, best, tensor) for tensor in requested or ({},)]


def _profile(
    inputs: Sequence[NetworkInput],
    dims: Mapping[str, tuple[int, ...]],
    max_batch_size: int,
    best: int,
    requested: Mapping[str, Mapping[str, Shape]],
) -> Profile:
    shapes: dict[str, Triple] = {}
    values: dict[str, Triple] = {}
    for tensor in inputs:
        bounds = requested.get(tensor.name)
        if tensor.is_shape:
            values[tensor.name] = _values(tensor, bounds)
            if -1 not in tensor.shape:
                shapes[tensor.name] = (list(tensor.shape),) * 3
        elif bounds is not None:
            shapes[tensor.name] = _requested(tensor, bounds)
        elif -1 in tensor.shape:
            shapes[tensor.name] = _declared(tensor, dims.get(tensor.name, ()), max_batch_size, best)
    return Profile(shapes, values)


def _values(tensor: NetworkInput, bounds: Mapping[str, Shape] | None) -> Triple:
    if bounds is None:
        raise invalid(
            "profiles", f"input '{tensor.name}' decides shapes by its values: give their min, opt and max in a profile"
        )
    count = tensor.shape[0] if tensor.shape else 1
    if count not in (-1, len(bounds["min"])):
        raise invalid("profiles", f"input '{tensor.name}' has {count} values, and the profile {len(bounds['min'])}")
    return bounds["min"], bounds["opt"], bounds["max"]


def _requested(tensor: NetworkInput, bounds: Mapping[str, Shape]) -> Triple:
    triple = bounds["min"], bounds["opt"], bounds["max"]
    if len(triple[0]) != len(tensor.shape):
        raise invalid(
            "profiles",
            f"input '{tensor.name}' has {len(tensor.shape)} dimensions with the batch, and the profile "
            f"{len(triple[0])}",
        )
    for dimension, size in enumerate(tensor.shape):
        if size != -1 and any(part[dimension] != size for part in triple):
            raise invalid("profiles", f"input '{tensor.name}' has {size} as dimension {dimension}, which cannot vary")
    return triple


def _declared(tensor: NetworkInput, dims: tuple[int, ...], max_batch_size: int, best: int) -> Triple:
    batch = 1 if max_batch_size else 0
    inner = list(tensor.shape[batch:])
    for dimension, size in enumerate(inner):
        if size == -1:
            fixed = dims[dimension] if len(dims) == len(inner) else -1
            if fixed == -1:
                raise invalid("profiles", _unknown_size(tensor, dimension + batch))
            inner[dimension] = fixed
    if not batch:
        return inner, list(inner), list(inner)
    return [1, *inner], [best, *inner], [max_batch_size, *inner]


def _unknown_size(tensor: NetworkInput, dimension: int) -> str:
    name = tensor.names[dimension] if dimension < len(tensor.names) else ""
    called = f" ('{name}')" if name else ""
    return (
        f"input '{tensor.name}' may be of any size in dimension {dimension}{called}: give its min, opt and max shapes "
        "in a profile, or fix it in spec.inputs"
    )


def _check_batches(inputs: Sequence[NetworkInput], max_batch_size: int) -> None:
    for tensor in inputs:
        if max_batch_size and not tensor.is_shape and tensor.shape and tensor.shape[0] not in (-1, max_batch_size):
            raise BuildError(
                BuildFailure.UNSUPPORTED_MODEL,
                f"spec.maxBatchSize: is {max_batch_size}, and input '{tensor.name}' of the ONNX model has a fixed "
                f"batch of {tensor.shape[0]}: export it with a first dimension that varies, or set maxBatchSize to 0",
            )


def _check_names(inputs: Sequence[NetworkInput], requested: Sequence[Mapping[str, object]]) -> None:
    names = [tensor.name for tensor in inputs]
    for index, profile in enumerate(requested):
        for name in profile:
            if name not in names:
                near = get_close_matches(name, names, 1)
                meant = f"; do you mean '{near[0]}'?" if near else f"; it has {', '.join(names)}"
                raise invalid(f"profiles[{index}].{name}", f"the model has no such input{meant}")


__all__ = ["NetworkInput", "Profile", "profiles_of"]
