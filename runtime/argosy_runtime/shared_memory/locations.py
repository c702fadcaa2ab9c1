"""Where the tensors of a request lie in shared memory, as the request says it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TensorLocation:
    """A tensor's location: `size` bytes from `offset` on in a region. Both are of 64 bits without a sign."""

    region: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class TensorLocations:
    """The locations of a request's inputs and outputs, by the names of those that have one."""

    inputs: dict[str, TensorLocation] = field(default_factory=dict)
    outputs: dict[str, TensorLocation] = field(default_factory=dict)
