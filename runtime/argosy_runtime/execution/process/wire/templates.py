"""The common part of similar requests or responses, which is sent once and is a number from then on.

Each side has the templates that it has sent and received, by number, up to `CAPACITY`; the number of the oldest is then
used again. A new template is in the frame that needs it first, so both sides always mean the same by a number.
"""

from math import prod
from typing import Final

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import TensorSpec
from argosy_runtime.tensors import Data, string_count

from .frames import FrameError

CAPACITY: Final = 1024


class SentTemplates:
    """Numbers of the templates that the other side has, by their keys, which are equal for equal templates."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = FifoCache[object, int](CAPACITY)

    def find(self, key: object) -> int:
        """Return the number of a template; -1 where the other side does not have it."""
        number = self._numbers.get(key)
        return -1 if number is None else number

    def add(self, key: object) -> int:
        """Assign a number to a template that the other side does not have, and return it."""
        number = len(self._numbers)
        evicted = self._numbers.put(key, number)
        if evicted is not None:
            number = evicted[1]
            self._numbers.put(key, number)
        return number


def check_tensor(spec: TensorSpec, data: Data) -> None:
    """Check that this can be such a tensor's data. Raises FrameError."""
    if spec.size >= 0:
        if len(data) != spec.size:
            raise FrameError(f"tensor '{spec.name}' of {spec.size} bytes has {len(data)}")
    elif string_count(data) != prod(spec.shape):
        raise FrameError(f"tensor '{spec.name}' is not {prod(spec.shape)} strings")
