"""Whose the bytes of a GPU are: by processes where these have names, by frameworks elsewhere, and never by a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_runtime.telemetry.machine.attribution import GpuReading, OnGpu, Version, VersionProcesses, attributed

A, B = ("a", 1), ("b", 1)


def on(family: set[int], reserved: int | None = None, instances: int = 1) -> VersionProcesses:
    return VersionProcesses(family, OnGpu(instances, reserved))


def test_processes_that_have_names_here_are_taken_by_their_numbers() -> None:
    reading = GpuReading(100, {7: 30, 8: 5, 9: 60}, frozenset((7, 8, 9)))
    assert attributed(reading, {A: on({7, 8}, 1)}, {B: on({9})}) == {A: 35, B: 60}


def test_of_the_only_version_on_a_gpu_is_all_that_is_used() -> None:
    for processes in ({}, {4711: 0}, {4711: 90, 4712: 10}):
        assert attributed(GpuReading(100, processes), {A: on({7, 8})}, {B: on({9})}) == {A: 100}


def test_several_differ_by_the_memory_that_their_frameworks_have_reserved() -> None:
    assert attributed(GpuReading(100), {A: on({7}, 50), B: on({8, 9}, 20, 2)}, {}) == {A: 60, B: 40}
    assert attributed(GpuReading(60), {A: on({7}, 50), B: on({8}, 20)}, {}) == {A: 50, B: 20}


@pytest.mark.parametrize(
    ("reading", "versions"),
    [
        (GpuReading(100), {A: on({7}, 50), B: on({8})}),
        (GpuReading(100), {A: on({7}, 50), B: on(set(), 20)}),
        (GpuReading(100), {A: on(set())}),
        (GpuReading(100, {4711: 1, 4712: 1}), {A: on({7})}),
        (GpuReading(100, {4711: 90}, frozenset((4711,))), {A: on({7})}),
        (GpuReading(0), {A: on({7})}),
        (GpuReading(100), {}),
    ],
    ids=["does not say", "in a thread", "only in a thread", "more processes", "another's process", "unused", "none"],
)
def test_memory_without_an_account_is_attributed_to_nothing(
    reading: GpuReading, versions: dict[Version, VersionProcesses]
) -> None:
    assert attributed(reading, versions, {}) == {}


sizes = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 4)), min_size=2, max_size=5)


@given(sizes, st.integers(1, 400))
@examples(100)
def test_no_more_is_attributed_than_is_used_or_reserved(reserved: list[tuple[int, int]], used: int) -> None:
    versions = {(f"m{at}", 1): on({at + 1}, size, count) for at, (size, count) in enumerate(reserved)}
    shares = attributed(GpuReading(used), versions, {})
    total = sum(size for size, _ in reserved)
    assert sum(shares.values()) <= max(used, total)
    assert all(shares[f"m{at}", 1] >= size for at, (size, _) in enumerate(reserved))
