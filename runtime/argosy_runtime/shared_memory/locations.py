"""Where the tensors of a request lie in shared memory, as the request says it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from argosy_runtime.tensors import TensorSpec


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

    def hold(self, inputs: Sequence[TensorSpec]) -> bool:
        """Return whether all of these inputs lie in shared memory, each with its own size; False where one is BYTES."""
        if len(self.inputs) != len(inputs):
            return False
        return all(spec.name in self.inputs and self.inputs[spec.name].size == spec.size for spec in inputs)
