"""Memory of models: of their processes with all that these have started, as statistics and metrics have it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from argosy_runtime.telemetry.machine import memory
from argosy_runtime.telemetry.machine.attribution import GpuReading, OnGpu
from argosy_runtime.telemetry.machine.memory import MemoryUse, ModelMemory

MIB = 2**20
PARENT = """
import subprocess, sys
data = bytearray(40 * 2**20)
subprocess.Popen([sys.executable, "-c", "data = bytearray(60 * 2**20); print('there', flush=True); input()"]).wait()
"""


@pytest.fixture
def parent() -> Iterator[int]:
    """Yield the number of a process with a child."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        yield process.pid
        process.communicate(b"\n")


async def test_a_process_with_its_child(parent: int) -> None:
    models = ModelMemory(lambda: {("m", 1): [parent], ("gone", 2): [2**30]}, {})
    await models.measure()
    use = models.of("m", 1)
    assert use is not None
    assert 100 * MIB < use.host < 200 * MIB
    assert use.gpus == {}
    assert models.of_model("m") == use.total == use.host
    assert models.of("gone", 2) == MemoryUse(0, {}, models.of("gone", 2).at)
    (entry,) = models.messages_of("m", 1)
    assert (entry.type, entry.id, entry.byte_size) == ("CPU", 0, use.host)


async def test_gpus_by_their_ordinal(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = {"a": {7: 5, 8: 1}, "b": {7: 3}, "c": {9: 9}}
    readings = {uuid: GpuReading(9, of_gpu, frozenset(of_gpu)) for uuid, of_gpu in processes.items()}
    monkeypatch.setattr(memory, "_reading", readings.get)
    monkeypatch.setattr(memory, "_children", lambda: {7: [8]})
    monkeypatch.setattr(memory, "_proportional_bytes", lambda pid: pid)
    models = ModelMemory(lambda: {("m", 1): [7]}, {0: "a", 1: "b", 2: "c"})
    await models.measure()
    use = models.of("m", 1)
    assert use is not None
    assert (use.host, use.gpus, use.total) == (15, {0: 6, 1: 3}, 24)
    assert [(one.type, one.id, one.byte_size) for one in use.messages()] == [
        ("CPU", 0, 15),
        ("GPU", 0, 6),
        ("GPU", 1, 3),
    ]
    used, at = models.families()
    assert [(dict(sample.labels), sample.value) for sample in used.samples] == [
        ({"model": "m", "version": "1", "type": "CPU", "device": "0"}, 15),
        ({"model": "m", "version": "1", "type": "GPU", "device": "0"}, 6),
        ({"model": "m", "version": "1", "type": "GPU", "device": "1"}, 3),
    ]
    assert len(at.samples) == 1


async def test_one_model_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = {("a", 1): [1], ("b", 1): [2]}
    monkeypatch.setattr(memory, "_children", dict)
    monkeypatch.setattr(memory, "_proportional_bytes", lambda pid: pid)
    models = ModelMemory(lambda: processes, {})
    await models.measure()
    processes[("a", 1)], processes[("b", 1)] = [5], [6]
    await models.measure("a")
    assert (models.of_model("a"), models.of_model("b")) == (5, 2)
    del processes[("a", 1)]
    await models.measure()
    assert (models.of("a", 1), models.of_model("b")) == (None, 6)


async def test_in_a_container_the_only_model_of_a_gpu_has_all_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_reading", lambda uuid: GpuReading(90, {4711: 0}))
    on_gpus = {("a", 1): {0: OnGpu(1)}}
    models = ModelMemory(lambda: {("a", 1): [1], ("b", 1): [2]}, {0: "x", 1: "y"}, lambda: on_gpus)
    await models.measure()
    use, other = models.of("a", 1), models.of("b", 1)
    assert use is not None
    assert other is not None
    assert (use.gpus, other.gpus) == ({0: 90}, {})


async def test_a_reading_that_fails_leaves_the_last_one_of_the_same_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[GpuReading | None] = [GpuReading(90)]
    processes = {("a", 1): [1]}
    monkeypatch.setattr(memory, "_reading", lambda uuid: readings[0])
    models = ModelMemory(lambda: processes, {0: "x"}, lambda: {("a", 1): {0: OnGpu(1)}})
    await models.measure()
    first = models.of("a", 1)
    assert first is not None
    assert first.gpus == {0: 90}
    readings[0] = None
    await models.measure()
    assert models.of("a", 1) == first
    processes["a", 1] = [2]  # it has crashed, and another one follows
    assert not models.families()[0].samples
    await models.measure()
    second = models.of("a", 1)
    assert second is not None
    assert second.gpus == {}


SIZES = (10, 40, 80)
"""MiB of the processes of `hogs`."""


@pytest.fixture
def hogs() -> Iterator[list[int]]:
    """Yield the numbers of processes of the same program with different memory."""
    code = "import sys; data = bytearray(int(sys.argv[1]) * 2**20); print('there', flush=True); input()"
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for size in SIZES
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"there\n"
        yield [process.pid for process in started]
        for process in started:
            process.communicate(b"\n")


async def test_models_have_the_memory_of_their_own_processes(hogs: list[int]) -> None:
    processes = {(f"m{size}", 1): [pid] for size, pid in zip(SIZES, hogs, strict=True)}
    models = ModelMemory(lambda: processes, {})
    await models.measure()
    small, medium, large = (models.of_model(f"m{size}") for size in SIZES)
    assert medium - small == pytest.approx(30 * MIB, abs=5 * MIB)
    assert large - medium == pytest.approx(40 * MIB, abs=5 * MIB)
