"""What requests or responses alike have in common is sent once, and is a number from then on.

Each side keeps what it has sent and what it has got, by number, up to `CAPACITY`; the number of the oldest is then used
anew. A new plan stands in the frame that needs it first, so both sides always mean the same by a number.
"""

from math import prod
from typing import Any, Final

from argosy_runtime.messages import TensorSpec
from argosy_runtime.tensors import Data, string_count

from .frames import FrameError

CAPACITY: Final = 1024


class SentPlans:
    """Which number the other side knows a plan by. A plan is known by its key, equal for equal plans."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def find(self, key: object) -> int:
        """Return the number of a plan; -1 where the other side does not know it."""
        return self._numbers.get(key, -1)

    def add(self, key: object) -> int:
        """Number a plan that the other side does not know, and return the number."""
        number = len(self._numbers)
        if number == CAPACITY:
            number = self._numbers.pop(next(iter(self._numbers)))
        self._numbers[key] = number
        return number


def check_tensor(spec: TensorSpec, data: Data) -> None:
    """Check that this can be such a tensor's data. Raises FrameError."""
    if spec.size >= 0:
        if len(data) != spec.size:
            raise FrameError(f"tensor '{spec.name}' of {spec.size} bytes has {len(data)}")
    elif string_count(data) != prod(spec.shape):
        raise FrameError(f"tensor '{spec.name}' is not {prod(spec.shape)} strings")
