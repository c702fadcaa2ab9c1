"""Memory of models: of their processes with all that these have started, as statistics and metrics have it."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from argosy_runtime.telemetry.machine import memory
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
    monkeypatch.setattr(memory, "_gpu_processes", lambda gpus: {0: {7: 5, 8: 1}, 1: {7: 3}, 2: {9: 9}})
    monkeypatch.setattr(memory, "_children", lambda: {7: [8]})
    monkeypatch.setattr(memory, "_proportional_bytes", lambda pid: pid)
    models = ModelMemory(lambda: {("m", 1): [7]}, {})
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
