"""Regions of clients: who registers them, how long they stay, and what they refuse."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import pytest
from tests.runtime.shared_memory.memories import Memories

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.shared_memory.regions import ClientRegions, RegionKind
from argosy_runtime.tensors.buffers import BufferPool

SYSTEM, CUDA = RegionKind.SYSTEM, RegionKind.CUDA
HANDLE = bytes(64)
PREFIX = "triton_python_backend_shm_region_"
RESERVED = f"/{PREFIX}1"


@pytest.fixture
def memories() -> Memories:
    return Memories()


@pytest.fixture
def regions(memories: Memories) -> ClientRegions:
    return ClientRegions(memories.open_system, memories.open_cuda, allowed=True, most_regions=3, most_copied=100)


def names(regions: ClientRegions, kind: RegionKind = SYSTEM) -> list[str]:
    return [region.name for region in regions.status(kind)]


def test_status_has_the_regions_of_a_kind_in_the_order_of_their_names(regions: ClientRegions) -> None:
    regions.register_system("b", "/key", 4096, 64)
    regions.register_cuda("g", HANDLE, 0, 32)
    regions.register_system("a", "/key", 0, 8)
    assert names(regions) == ["a", "b"]
    assert names(regions, CUDA) == ["g"]
    (region,) = regions.status(SYSTEM, "b")
    assert (region.key, region.offset, region.size) == ("/key", 4096, 64)
    (region,) = regions.status(CUDA, "g")
    assert (region.device, region.size) == (0, 32)


def test_regions_of_both_kinds_share_one_space_of_names(regions: ClientRegions) -> None:
    regions.register_system("r", "/key", 0, 8)
    with pytest.raises(ServingError, match=r"^shared memory region 'r' already in manager$") as raised:
        regions.register_cuda("r", HANDLE, 0, 8)
    assert raised.value.kind is ErrorKind.ALREADY_EXISTS
    with pytest.raises(
        ServingError, match=r"^The region named 'r' is registered as system shared memory, not CUDA shared memory$"
    ) as raised:
        regions.status(CUDA, "r")
    assert raised.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("kind", RegionKind)
def test_an_unknown_region_is_refused(regions: ClientRegions, kind: RegionKind) -> None:
    with pytest.raises(ServingError, match=f"^Unable to find {kind} shared memory region: 'r'$"):
        regions.status(kind, "r")
    with pytest.raises(ServingError, match=r"^Unable to find shared memory region: 'r'$") as raised:
        regions.use("r", 0, 0)
    assert raised.value.kind is ErrorKind.NOT_FOUND
    regions.unregister(kind, "r")


def test_unregistering_takes_one_region_or_all_of_a_kind(regions: ClientRegions, memories: Memories) -> None:
    regions.register_system("a", "/key", 0, 8)
    regions.register_system("b", "/key", 0, 8)
    regions.register_cuda("g", HANDLE, 0, 8)
    regions.unregister(CUDA, "a")
    regions.unregister(SYSTEM, "b")
    assert names(regions) == ["a"]
    regions.unregister(SYSTEM, "")
    assert (names(regions), names(regions, CUDA)) == ([], ["g"])
    assert [memories.opened[name].closed for name in "abg"] == [1, 1, 0]
    regions.close()
    assert memories.opened["g"].closed == 1


def test_a_region_in_use_stays_for_further_requests_until_the_last_one_ends(
    regions: ClientRegions, memories: Memories
) -> None:
    regions.register_system("r", "/key", 0, 8)
    first = regions.use("r", 0, 8)
    regions.unregister(SYSTEM, "r")
    assert names(regions) == ["r"]
    with pytest.raises(ServingError, match="already in manager"):
        regions.register_system("r", "/key", 0, 8)
    second = regions.use("r", 4, 4)
    regions.end_use(first)
    assert bytes(second.read(0, 8)) == bytes(8)
    regions.end_use(second)
    assert names(regions) == []
    assert memories.opened["r"].closed == 1
    regions.register_system("r", "/key", 0, 8)
    assert names(regions) == ["r"]


def test_without_the_flag_nothing_is_registered_or_unregistered(memories: Memories) -> None:
    regions = ClientRegions(memories.open_system, memories.open_cuda)
    for refused in (
        lambda: regions.register_system("r", "/key", 0, 8),
        lambda: regions.register_cuda("r", HANDLE, 0, 8),
        lambda: regions.unregister(SYSTEM, "r"),
        lambda: regions.unregister(CUDA, ""),
    ):
        with pytest.raises(ServingError, match=r"^Client shared memory is disabled\. Start the server with") as raised:
            refused()
        assert raised.value.kind is ErrorKind.UNSUPPORTED
    assert regions.status(SYSTEM) == []
    assert not memories.opened


def test_the_number_of_regions_and_the_length_of_their_names_are_limited(regions: ClientRegions) -> None:
    with pytest.raises(ServingError, match="at most 1024 characters, got 1025"):
        regions.register_system("r" * 1025, "/key", 0, 8)
    for name in "abc":
        regions.register_system(name, "/key", 0, 8)
    with pytest.raises(ServingError, match="'d': there are 3, the most of a server") as raised:
        regions.register_system("d", "/key", 0, 8)
    assert raised.value.kind is ErrorKind.UNAVAILABLE
    regions.unregister(SYSTEM, "a")
    regions.register_system("d", "/key", 0, 8)


def test_bytes_that_all_requests_copy_are_limited(regions: ClientRegions) -> None:
    regions.reserve(60)
    with pytest.raises(ServingError, match="hold 60 bytes of copies from shared memory, and 41 bytes") as raised:
        regions.reserve(41)
    assert raised.value.kind is ErrorKind.UNAVAILABLE
    regions.reserve(40)
    regions.free(60)
    regions.reserve(60)


def test_lost_memory_is_the_error_of_who_reads_or_writes_it(regions: ClientRegions, memories: Memories) -> None:
    regions.register_system("r", "/key", 0, 8)
    region = regions.use("r", 0, 8)
    region.write(2, b"abc")
    assert bytes(region.read(0, 6)) == b"\0\0abc\0"
    memories.opened["r"].lost = True
    with pytest.raises(ServingError, match=r"^cannot read shared memory region 'r': it is gone$") as raised:
        region.read(0, 8)
    assert raised.value.kind is ErrorKind.INVALID_ARG
    with pytest.raises(ServingError, match=r"^cannot write shared memory region 'r': it is gone$"):
        region.write(0, b"abc")


def test_a_region_that_cannot_be_opened_is_not_there(regions: ClientRegions) -> None:
    with pytest.raises(ServingError, match="invalid args"):
        regions.register_cuda("g", HANDLE, 1, 8)
    assert names(regions, CUDA) == []
    for key, reported in (
        ("//", "cannot register shared memory region 'r' - invalid shm key '//'"),
        (
            RESERVED,
            f"cannot register shared memory region 'r' with key '{RESERVED}' as the key contains the reserved prefix '{PREFIX}'",
        ),
    ):
        with pytest.raises(ServingError) as raised:
            regions.register_system("r", key, 0, 8)
        assert (raised.value.kind, raised.value.message) == (ErrorKind.INVALID_ARG, reported)
    assert names(regions) == []


def test_inputs_out_of_all_regions_lie_in_buffers_of_one_pool(memories: Memories) -> None:
    class Recorded(BufferPool):
        def __init__(self) -> None:
            super().__init__()
            self.taken: list[memoryview] = []

        def take(self, size: int) -> memoryview:
            self.taken.append(super().take(size))
            return self.taken[-1]

    pool = Recorded()
    regions = ClientRegions(memories.open_system, memories.open_cuda, allowed=True, buffers=pool)
    regions.register_system("r", "/key", 0, 8)
    regions.register_cuda("g", HANDLE, 0, 8)
    for name in ("r", "g"):
        region = regions.use(name, 0, 8)
        region.write(0, name.encode())
        copy = region.read(0, 8)
        pool.taken[-1][1:2] = b"x"
        assert bytes(copy) == name.encode() + b"x" + bytes(6)
        assert region.read(0, 0) == b""
    assert len(pool.taken) == 2
