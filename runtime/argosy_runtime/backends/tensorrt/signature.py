"""Tensors and optimization profiles of an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .library import V2_NAMES, trt

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor. `shape` is full, -1 for what varies; `datatype` a V2 name, None where there is none.

    `is_shape`: its values decide shapes. `on_host`: it is read and written there. `linear`: its elements are in
    order.
    """

    name: str
    is_input: bool
    shape: Shape
    datatype: str | None
    trt_type: str
    is_shape: bool
    on_host: bool
    linear: bool

    @property
    def dynamic(self) -> bool:
        """True if its shape is set for each batch."""
        return -1 in self.shape

    @property
    def values(self) -> int:
        """Number of elements of a shape tensor, which is a scalar or a vector."""
        return self.shape[0] if self.shape else 1


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest, best and largest shape of an input under one profile, or values of a shape tensor."""

    least: Shape
    best: Shape
    most: Shape

    def distance(self, sizes: Sequence[int]) -> int | None:
        """Return the distance from the best, summed over the dimensions; None outside the range."""
        if len(sizes) != len(self.best):
            return None
        if not all(low <= size <= high for low, size, high in zip(self.least, sizes, self.most, strict=True)):
            return None
        return sum(abs(size - best) for size, best in zip(sizes, self.best, strict=True))


@dataclass(frozen=True, slots=True)
class Profile:
    """One optimization profile: the shapes of every input, and the values of shape tensors."""

    index: int
    label: str
    shapes: Mapping[str, Range]
    values: Mapping[str, Range]

    @property
    def name(self) -> str:
        """Name in Triton's messages."""
        return f"{self.label}[{self.index}]"

    def distance(self, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> int | None:
        """Return the distance of a batch from the best shapes and values; None outside the profile."""
        parts = [self.shapes[name].distance(shape) for name, shape in shapes.items() if name not in values]
        parts += [self.values[name].distance(value) for name, value in values.items()]
        fitting = [part for part in parts if part is not None]
        return sum(fitting) if len(fitting) == len(parts) else None


@dataclass(frozen=True, slots=True)
class Signature:
    """All of an engine's tensors by name, in its order, and how many profiles it has."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    profiles: int

    @property
    def has_shape_tensors(self) -> bool:
        """True if some tensor has shapes as values, or decides shapes by its values."""
        return any(info.is_shape for side in (self.inputs, self.outputs) for info in side.values())


def read_signature(engine: Any) -> Signature:
    """Return the engine's tensors."""
    infos = [_info(engine, engine.get_tensor_name(index)) for index in range(engine.num_io_tensors)]
    return Signature(
        {info.name: info for info in infos if info.is_input},
        {info.name: info for info in infos if not info.is_input},
        engine.num_optimization_profiles,
    )


def _info(engine: Any, name: str) -> TensorInfo:
    trt_type = engine.get_tensor_dtype(name).name
    return TensorInfo(
        name=name,
        is_input=engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
        shape=tuple(engine.get_tensor_shape(name)),
        datatype=V2_NAMES.get(trt_type),
        trt_type=trt_type,
        is_shape=bool(engine.is_shape_inference_io(name)),
        on_host=engine.get_tensor_location(name) == trt.TensorLocation.HOST,
        linear=engine.get_tensor_format(name) == trt.TensorFormat.LINEAR,
    )


def read_profile(engine: Any, signature: Signature, index: int, label: str) -> Profile:
    """Return one of the engine's profiles."""
    shapes = {name: _range(engine.get_tensor_profile_shape(name, index)) for name in signature.inputs}
    values = {
        # By position: the binding's keyword labels for the two are the wrong way round.
        name: _range(engine.get_tensor_profile_values(index, name))
        for name, info in signature.inputs.items()
        if info.is_shape
    }
    return Profile(index, label, shapes, values)


def _range(sizes: Sequence[Sequence[int]]) -> Range:
    least, best, most = (tuple(map(int, part)) for part in sizes)
    return Range(least, best, most)
