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
    """An input as the network has it: `shape` with the batch, -1 for what varies, with the ONNX file's `names` for it.

    `is_shape`: its values decide shapes. `data_type` as a configuration calls it, "" where it has no word for it.
    """

    name: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    is_shape: bool = False
    data_type: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """What TensorRT is told of one: shapes by input, and values of those that are shape tensors."""

    shapes: Mapping[str, Triple]
    values: Mapping[str, Triple]


def profiles_of(
    inputs: Sequence[NetworkInput],
    declared: Sequence[TensorSpec],
    max_batch_size: int,
    batch_sizes: Sequence[int],
    asked: Sequence[Mapping[str, Mapping[str, Shape]]],
) -> list[Profile]:
    """Return the profiles to build for; none where nothing varies.

    One from what is declared, unless some are `asked`: batches from 1 to the largest, fastest at the largest of
    `batch_sizes`. What an asked one leaves out is as declared. Raises BuildError that names the input and the way out.
    """
    _check_batches(inputs, max_batch_size)
    _check_known(inputs, asked)
    if not asked and not any(-1 in each.shape or each.is_shape for each in inputs):
        return []
    dims = {spec.name: spec.dims for spec in declared}
    best = max((size for size in batch_sizes if size <= max_batch_size), default=max_batch_size)
    return [_profile(inputs, dims, max_batch_size, best, each) for each in asked or ({},)]


def _profile(
    inputs: Sequence[NetworkInput],
    dims: Mapping[str, tuple[int, ...]],
    max_batch_size: int,
    best: int,
    asked: Mapping[str, Mapping[str, Shape]],
) -> Profile:
    shapes: dict[str, Triple] = {}
    values: dict[str, Triple] = {}
    for each in inputs:
        given = asked.get(each.name)
        if each.is_shape:
            values[each.name] = _values(each, given)
            if -1 not in each.shape:
                shapes[each.name] = (list(each.shape),) * 3
        elif given is not None:
            shapes[each.name] = _asked(each, given)
        elif -1 in each.shape:
            shapes[each.name] = _declared(each, dims.get(each.name, ()), max_batch_size, best)
    return Profile(shapes, values)


def _values(tensor: NetworkInput, given: Mapping[str, Shape] | None) -> Triple:
    if given is None:
        raise invalid(
            "profiles", f"input '{tensor.name}' decides shapes by its values: give their min, opt and max in a profile"
        )
    count = tensor.shape[0] if tensor.shape else 1
    if count not in (-1, len(given["min"])):
        raise invalid("profiles", f"input '{tensor.name}' has {count} values, and the profile {len(given['min'])}")
    return given["min"], given["opt"], given["max"]


def _asked(tensor: NetworkInput, given: Mapping[str, Shape]) -> Triple:
    triple = given["min"], given["opt"], given["max"]
    if len(triple[0]) != len(tensor.shape):
        raise invalid(
            "profiles",
            f"input '{tensor.name}' has {len(tensor.shape)} dimensions with the batch, and the profile "
            f"{len(triple[0])}",
        )
    for place, size in enumerate(tensor.shape):
        if size != -1 and any(part[place] != size for part in triple):
            raise invalid("profiles", f"input '{tensor.name}' has {size} as dimension {place}, which cannot vary")
    return triple


def _declared(tensor: NetworkInput, dims: tuple[int, ...], max_batch_size: int, best: int) -> Triple:
    batch = 1 if max_batch_size else 0
    inner = list(tensor.shape[batch:])
    for place, size in enumerate(inner):
        if size == -1:
            fixed = dims[place] if len(dims) == len(inner) else -1
            if fixed == -1:
                raise invalid("profiles", _unknown_size(tensor, place + batch))
            inner[place] = fixed
    if not batch:
        return inner, list(inner), list(inner)
    return [1, *inner], [best, *inner], [max_batch_size, *inner]


def _unknown_size(tensor: NetworkInput, place: int) -> str:
    name = tensor.names[place] if place < len(tensor.names) else ""
    called = f" ('{name}')" if name else ""
    return (
        f"input '{tensor.name}' may be of any size in dimension {place}{called}: give its min, opt and max shapes in a "
        "profile, or fix it in spec.inputs"
    )


def _check_batches(inputs: Sequence[NetworkInput], max_batch_size: int) -> None:
    for each in inputs:
        if max_batch_size and not each.is_shape and each.shape and each.shape[0] not in (-1, max_batch_size):
            raise BuildError(
                BuildFailure.UNSUPPORTED_MODEL,
                f"spec.maxBatchSize: is {max_batch_size}, and input '{each.name}' of the ONNX model has a fixed batch "
                f"of {each.shape[0]}: export it with a first dimension that varies, or set maxBatchSize to 0",
            )


def _check_known(inputs: Sequence[NetworkInput], asked: Sequence[Mapping[str, object]]) -> None:
    known = [each.name for each in inputs]
    for place, profile in enumerate(asked):
        for name in profile:
            if name not in known:
                near = get_close_matches(name, known, 1)
                meant = f"; do you mean '{near[0]}'?" if near else f"; it has {', '.join(known)}"
                raise invalid(f"profiles[{place}].{name}", f"the model has no such input{meant}")


__all__ = ["NetworkInput", "Profile", "profiles_of"]
