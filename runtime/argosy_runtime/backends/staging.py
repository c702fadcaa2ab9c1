"""Page-locked memory between the host's ordinary memory and a device's, which the device reads and writes by itself."""

from collections.abc import Callable
from typing import Final, Literal

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelOptimizationPolicy

from argosy_runtime.messages import Array

LIMIT: Final = 64 << 20
"""Bytes that an instance keeps for one direction. What does not fit is copied without it."""

_ALIGNMENT: Final = 64

Allocate = Callable[[int], Array]
"""So many bytes of page-locked memory, as uint8."""


class Staging:
    """One instance's buffer for one direction, used again for every batch.

    It grows between batches, to what the largest one asked for: none of its memory is given back while a copy may run.
    """

    def __init__(self, allocate: Allocate, limit: int = LIMIT) -> None:
        self._allocate = allocate
        self._limit = limit
        self._buffer: Array = np.empty(0, np.uint8)
        self._wanted = 0

    def take(self, size: int) -> Array | None:
        """Room for `size` bytes until `reset`, None where there is none."""
        begin = self._wanted
        self._wanted += -(-size // _ALIGNMENT) * _ALIGNMENT
        return self._buffer[begin : begin + size] if self._wanted <= len(self._buffer) else None

    def reset(self) -> None:
        """The batch's copies are over."""
        wanted, self._wanted = self._wanted, 0
        if not len(self._buffer) < wanted <= self._limit:
            return
        try:
            self._buffer = self._allocate(1 << (wanted - 1).bit_length())
        except Exception:  # the machine has no more of it: what there is will do
            self._limit = len(self._buffer)


def limit(policy: ModelOptimizationPolicy, field: Literal["input_pinned_memory", "output_pinned_memory"]) -> int:
    """Return what a configuration's `optimization` allows for one direction: it is on unless it is turned off."""
    return LIMIT if not policy.HasField(field) or getattr(policy, field).enable else 0
