"""Memory that the server and a model's process share."""

import fcntl
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from argosy_runtime.execution.process.wire.arena import Arena, make_memory
from argosy_runtime.tensors.allocator import Allocator

PAGE = 4096
SIZE = 16 * PAGE


class AllocatorMachine(RuleBasedStateMachine):
    """Takes and gives back at random."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(SIZE)
        self.taken: dict[int, int] = {}

    @rule(size=st.integers(0, SIZE + 1))
    def take(self, size: int) -> None:
        """Take a free piece, unless none is large enough."""
        begin = self.allocator.allocate(size)
        if begin < 0:
            assert not any(self.is_free(at, max(1, size)) for at in range(0, SIZE, PAGE))
        else:
            assert self.is_free(begin, size)
            assert begin % PAGE == 0
            self.taken[begin] = size

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        """Give back a taken piece."""
        begin = data.draw(st.sampled_from(sorted(self.taken)))
        assert self.allocator.free(begin)
        del self.taken[begin]

    @rule(begin=st.integers(-1, SIZE + 1))
    def give_back_what_is_not_taken(self, begin: int) -> None:
        """Give back a piece that is not taken: it is refused."""
        if begin not in self.taken:
            assert not self.allocator.free(begin)

    @invariant()
    def all_of_it_can_be_had_again(self) -> None:
        """Check that where nothing is taken, the memory is one piece."""
        assert self.allocator.is_empty == (not self.taken)
        if not self.taken:
            assert self.allocator.allocate(SIZE) == 0
            assert self.allocator.free(0)

    def is_free(self, begin: int, size: int) -> bool:
        """Return whether all of it lies within the memory and in no piece that is taken."""
        end = begin + size
        return end <= SIZE and not any(
            begin < at + max(1, n) and at < max(end, begin + 1) for at, n in self.taken.items()
        )


TestAllocator = AllocatorMachine.TestCase


@pytest.fixture
def memory() -> Iterator[int]:
    """Yield memory for an arena of `SIZE` bytes each way."""
    fd = make_memory(SIZE)
    yield fd
    os.close(fd)


@pytest.fixture
def sides(memory: int) -> tuple[Arena, Arena]:
    """Return the server's side and the model's."""
    return Arena(memory, server=True), Arena(memory, server=False)


@pytest.mark.parametrize("direction", [1, -1])
def test_what_one_side_puts_the_other_reads(sides, direction):
    writer, reader = sides[::direction]
    one, two = writer.outgoing.put(b"1" * 5000), writer.outgoing.put(memoryview(b"2" * 5000))
    assert bytes(reader.incoming.lend(one, 5000)) == b"1" * 5000
    assert bytes(reader.incoming.lend(two, 5000)) == b"2" * 5000


def test_a_piece_is_gone_with_the_last_array_over_it(sides):
    writer, reader = sides
    at = writer.outgoing.put(np.arange(2048, dtype=np.float32).view(np.uint8).data)
    lent = reader.incoming.lend(at, 8192)
    array = np.frombuffer(lent, np.float32).reshape(32, 64)
    row = array[7]
    del lent, array
    assert not reader.incoming.any_gone
    assert row[0] == 7 * 64
    assert type(row) is np.ndarray
    del row
    assert reader.incoming.take_gone() == [at]
    assert not reader.incoming.any_lent
    assert writer.outgoing.free(at)
    assert writer.outgoing.is_empty


def test_what_is_retained_is_never_written_over(sides):
    writer, reader = sides
    retained = reader.incoming.lend(writer.outgoing.put(b"k" * PAGE), PAGE)
    for number in range(100):
        at = writer.outgoing.put(bytes([number]) * PAGE)
        assert bytes(reader.incoming.lend(at, PAGE)) == bytes([number]) * PAGE
        for gone in reader.incoming.take_gone():
            assert writer.outgoing.free(gone)
    assert bytes(retained) == b"k" * PAGE


def test_no_memory_is_free_where_nothing_was_returned(sides):
    outgoing = sides[0].outgoing
    assert [outgoing.put(b"x" * 8 * PAGE) for _ in range(3)] == [0, 8 * PAGE, -1]
    assert outgoing.free(0)
    assert outgoing.put(b"x") == 0


@pytest.mark.parametrize(
    ("begin", "size"), [(0, SIZE + 1), (SIZE, 1), (1, SIZE), (-1, 5), (0, 0), (0, -1), (1 << 63, 1)]
)
def test_a_location_outside_is_none(sides, begin, size):
    assert sides[0].incoming.lend(begin, size) is None
    assert not sides[0].incoming.any_lent


def test_its_size_is_fixed(memory):
    for size in (0, SIZE, 4 * SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(memory, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


def test_memory_outlives_its_arena_while_a_view_is_retained(memory):
    server, model = Arena(memory, server=True), Arena(memory, server=False)
    retained = server.incoming.lend(model.outgoing.put(b"k" * PAGE), PAGE)
    del server, model
    assert bytes(retained) == b"k" * PAGE
    with mmap.mmap(memory, 0) as shared:
        assert len(shared) == 2 * SIZE
