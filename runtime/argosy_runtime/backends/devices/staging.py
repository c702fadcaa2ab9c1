"""Page-locked memory between the host's ordinary memory and a device's, which the device reads and writes by itself."""

from collections.abc import Callable
from typing import Final, Literal

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelOptimizationPolicy

from argosy_runtime.messages import Array

from .pinned_pool import PINNED_POOL, PinnedPool

LIMIT: Final = 64 << 20
"""Bytes of page-locked memory that an instance retains for one direction; larger batches are copied without it."""

_ALIGNMENT: Final = 64

Allocate = Callable[[int], Array]
"""Allocates a number of bytes of page-locked memory, as uint8."""


class Staging:
    """One instance's buffer for one direction, reused by every batch.

    It grows between batches, to what the largest batch requested: no memory is freed while a copy may run.
    """

    def __init__(self, allocate: Allocate, limit: int = LIMIT, pool: PinnedPool = PINNED_POOL) -> None:
        self._allocate = allocate
        self._limit = limit
        self._pool = pool
        self._buffer: Array = np.empty(0, np.uint8)
        self._requested = 0

    def take(self, size: int) -> Array | None:
        """Return `size` bytes that are the caller's until `reset`, None where the buffer is too small."""
        begin = self._requested
        self._requested += -(-size // _ALIGNMENT) * _ALIGNMENT
        return self._buffer[begin : begin + size] if self._requested <= len(self._buffer) else None

    def reset(self) -> None:
        """Free the buffer for the next batch, and enlarge it where the last one requested more."""
        requested, self._requested = self._requested, 0
        if not len(self._buffer) < requested <= self._limit:
            return
        size = 1 << (requested - 1).bit_length()
        if not self._pool.reserve(size):
            return
        try:
            self._buffer = self._allocate(size)
        except Exception:  # the machine has no more page-locked memory: the present buffer stays
            self._pool.free(size)
            self._limit = len(self._buffer)
        else:
            self._pool.free_with(self._buffer, size)


def buffers(policy: ModelOptimizationPolicy, allocate: Allocate) -> tuple[Staging, Staging]:
    """Return an instance's buffers to and from its device, of no size where the configuration turns one off."""
    incoming, outgoing = _limit(policy, "input_pinned_memory"), _limit(policy, "output_pinned_memory")
    return Staging(allocate, incoming), Staging(allocate, outgoing)


def _limit(policy: ModelOptimizationPolicy, field: Literal["input_pinned_memory", "output_pinned_memory"]) -> int:
    """Return the limit of one direction in bytes: pinned memory is on unless it is turned off."""
    return LIMIT if not policy.HasField(field) or getattr(policy, field).enable else 0


__all__ = ["Staging", "buffers"]
