"""Buffers whose memory is used again, and never while anything reads it."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.messages import Array
from argosy_runtime.tensors.buffers import BufferPool

LARGE = 1 << 16


def address(buffer: memoryview) -> int:
    return np.frombuffer(buffer, np.uint8).ctypes.data


def test_the_memory_of_a_buffer_is_used_again_after_the_last_view_of_it():
    pool = BufferPool()
    buffer = pool.take(LARGE)
    first = address(buffer)
    rows = np.frombuffer(buffer.toreadonly(), np.float32).reshape(64, -1)
    row = rows[3]
    del buffer, rows
    assert address(pool.take(LARGE)) != first
    del row
    other = np.empty(LARGE, np.uint8)  # what a freed buffer's own memory would become
    assert address(pool.take(LARGE)) == first != other.ctypes.data


def test_without_free_memory_buffers_are_allocated_apart():
    pool = BufferPool(2 * LARGE)
    buffers = [pool.take(LARGE) for _ in range(3)]
    buffers.append(pool.take(4 * LARGE))
    for number, buffer in enumerate(buffers):
        buffer[:] = bytes([number]) * len(buffer)
    assert [bytes(buffer[:2]) for buffer in buffers] == [bytes([number]) * 2 for number in range(4)]


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1])
def test_a_buffer_has_the_size_that_it_was_taken_with(size):
    buffer = BufferPool().take(size)
    assert (len(buffer), buffer.readonly, buffer.format) == (size, False, "B")


def test_a_buffer_outlives_its_pool():
    buffer = BufferPool(LARGE).take(LARGE)
    buffer[:] = b"x" * LARGE
    gc.collect()
    assert bytes(buffer) == b"x" * LARGE


def test_without_memory_for_the_pool_buffers_are_allocated_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = np.empty

    def scarce(size: int, dtype: type) -> Array:
        if size > LARGE:
            raise MemoryError
        return empty(size, dtype)

    pool = BufferPool(2 * LARGE)
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", scarce)
        assert [len(pool.take(LARGE)) for _ in range(3)] == [LARGE] * 3
    buffers = [pool.take(LARGE), pool.take(LARGE)]
    assert address(buffers[1]) - address(buffers[0]) == LARGE, "both lie in the pool"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3 * LARGE)), max_size=30))
def test_no_buffer_is_written_over_while_it_is_read(turns: list[tuple[int, int]]) -> None:
    pool = BufferPool(6 * LARGE)
    retained: dict[int, tuple[bytes, memoryview]] = {}
    for turn, (key, size) in enumerate(turns):
        buffer = pool.take(size)
        buffer[:] = content = bytes([turn]) * size
        retained[key] = (content, buffer)
        for expected, view in retained.values():
            assert view == expected
