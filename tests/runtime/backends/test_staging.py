"""The page-locked buffer of an instance: used again, grown between batches, bounded."""

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelOptimizationPolicy

from argosy_runtime.backends.devices import staging
from argosy_runtime.backends.devices.staging import LIMIT, Staging


class Allocator:
    def __init__(self, most: int = LIMIT) -> None:
        self.sizes: list[int] = []
        self._most = most

    def __call__(self, size: int) -> np.ndarray:
        if size > self._most:
            raise MemoryError
        self.sizes.append(size)
        return np.zeros(size, np.uint8)


def test_it_grows_after_a_batch_that_needs_more_and_is_used_again() -> None:
    allocate = Allocator()
    buffer = Staging(allocate)
    assert buffer.take(100) is None
    assert allocate.sizes == [], "no memory goes while a copy may run"
    buffer.reset()
    assert allocate.sizes == [128]
    first, second = buffer.take(60), buffer.take(64)
    assert first is not None
    assert second is not None
    first[:], second[:] = 1, 2
    assert first.tolist() == [1] * 60, "each has its own"
    assert second.ctypes.data % 64 == first.ctypes.data % 64
    assert buffer.take(1) is None
    buffer.reset()
    again = buffer.take(128)
    assert again is not None
    assert allocate.sizes == [128, 256], "the batch before wanted 129 bytes"
    buffer.reset()
    assert allocate.sizes == [128, 256]


def test_it_is_bounded() -> None:
    allocate = Allocator()
    buffer = Staging(allocate, limit=1024)
    for size in (1025, 1024, 2000):
        buffer.take(size)
        buffer.reset()
    assert allocate.sizes == [1024]


def test_a_machine_that_has_no_more() -> None:
    allocate = Allocator(most=128)
    buffer = Staging(allocate)
    for size in (100, 1000, 1000):
        buffer.take(size)
        buffer.reset()
    assert allocate.sizes == [128]
    assert buffer.take(128) is not None


def test_a_configuration_can_turn_one_direction_off() -> None:
    policy = ModelOptimizationPolicy()
    assert allocated(policy) == [64, 64]
    policy.input_pinned_memory.enable = False
    policy.output_pinned_memory.enable = True
    assert allocated(policy) == [0, 64]


def allocated(policy: ModelOptimizationPolicy) -> list[int]:
    """Return the size of each direction's buffer after a batch of 64 bytes."""
    sizes = []
    for buffer in staging.buffers(policy, Allocator()):
        buffer.take(64)
        buffer.reset()
        sizes.append(0 if buffer.take(1) is None else 64)
    return sizes
