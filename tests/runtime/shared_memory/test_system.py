"""System memory of clients, as it is on this machine: opened by key, read and written without being mapped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.memory_objects import FOLDER, PAGE, MemoryObject, memory_object
from tests.runtime.shared_memory.memories import read

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.shared_memory.regions import MemoryLostError
from argosy_runtime.shared_memory.system import SystemMemory, open_memory

CONTENT = bytes(range(256)) * 32


@pytest.fixture
def made() -> Iterator[MemoryObject]:
    with memory_object(CONTENT) as made:
        yield made


@pytest.fixture
def memory(made: MemoryObject) -> Iterator[SystemMemory]:
    opened = open_memory("r", made.key, PAGE, PAGE)
    yield opened
    opened.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_offsets_begin_at_the_region(made: MemoryObject, memory: SystemMemory) -> None:
    assert read(memory, 2, 6) == CONTENT[PAGE + 2 : PAGE + 8]
    memory.write(3, b"abc")
    memory.write(0, b"")
    assert made.read(PAGE + 3, 3) == b"abc"
    assert made.read(0, PAGE) == CONTENT[:PAGE]


def test_what_was_read_is_a_copy(made: MemoryObject, memory: SystemMemory) -> None:
    copy = read(memory, 0, 4)
    made.write(b"abcd", PAGE)
    assert copy == CONTENT[PAGE : PAGE + 4]


@pytest.mark.parametrize("size", [0, PAGE, PAGE + 5])
def test_an_object_that_became_shorter_is_an_error_and_no_signal(
    made: MemoryObject, memory: SystemMemory, size: int
) -> None:
    made.resize(size)
    with pytest.raises(MemoryLostError, match="shorter"):
        read(memory, 0, 6)
    with pytest.raises(MemoryLostError, match="shorter"):
        memory.write(0, b"abcdef")
    assert made.path.stat().st_size == size


def test_the_region_outlives_the_name_of_its_object(made: MemoryObject, memory: SystemMemory) -> None:
    made.path.unlink()
    memory.write(0, b"ab")
    assert read(memory, 0, 2) == b"ab"


def test_a_key_is_opened_again_for_another_region(made: MemoryObject, memory: SystemMemory) -> None:
    made.path.unlink()
    made.path.write_bytes(b"x" * 8)
    again = open_memory("s", made.key, 0, 8)
    assert read(again, 0, 8) == b"x" * 8
    assert read(memory, 0, 2) == CONTENT[PAGE : PAGE + 2]
    again.close()


def test_leading_slashes_of_a_key_make_no_difference(made: MemoryObject) -> None:
    for key in (made.name, f"///{made.name}"):
        open_memory("r", key, 0, 8).close()


@pytest.mark.parametrize(
    "key", ["/no such object", "/a/b", "../etc/passwd", "/..", "/.", "/a\0b", "/" + "x" * 256, "/\ud800"]
)
def test_a_key_without_an_object_is_refused(key: str) -> None:
    before = descriptors()
    with pytest.raises(ServingError) as raised:
        open_memory("r", key, 0, 8)
    assert raised.value.kind is ErrorKind.INTERNAL
    assert raised.value.message == f"Unable to open shared memory region: '{key}'"
    assert descriptors() == before


def test_links_folders_and_pipes_are_no_memory(made: MemoryObject, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    link, folder, pipe = (FOLDER / f"{made.name}-{kind}" for kind in ("link", "folder", "pipe"))
    link.symlink_to(secret)
    folder.mkdir()
    os.mkfifo(pipe)
    before = descriptors()
    try:
        for path, reported in ((link, "Unable to open"), (folder, "Unable to open"), (pipe, "': invalid args$")):
            with pytest.raises(ServingError, match=reported):
                open_memory("r", path.name, 0, 4)
    finally:
        link.unlink()
        folder.rmdir()
        pipe.unlink()
    assert descriptors() == before


@pytest.mark.parametrize(
    ("offset", "size", "reason"),
    [
        (0, len(CONTENT) + 1, "invalid args"),
        (PAGE, len(CONTENT), "invalid args"),
        (2**64 - PAGE, PAGE, "invalid args"),
        (0, 2**64 - 1, "invalid args"),
        (PAGE, 0, "unable to process address spaceInvalid argument"),
        (8, 8, "unable to process address spaceInvalid argument"),
    ],
)
def test_a_region_outside_of_its_object_is_refused(made: MemoryObject, offset: int, size: int, reason: str) -> None:
    before = descriptors()
    with pytest.raises(ServingError) as raised:
        open_memory("r", made.key, offset, size)
    assert raised.value.message == f"failed to register shared memory region 'r': {reason}"
    assert descriptors() == before
