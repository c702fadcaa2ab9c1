"""The memory of a server with its children: real processes on the host, the driver's answers as NVML documents them."""

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from argosy.local.profiling.memory import MemoryMeter

MIB = 2**20
HOG = f"import sys; data = b'x' * (60 * {MIB}); print(len(data), flush=True); sys.stdin.read()"


def driver(monkeypatch: pytest.MonkeyPatch, used: dict[str, int], processes: dict[str, dict[int, int]]) -> None:
    """Let the driver say how many MiB of a GPU are used, and by which processes."""

    def running(gpu: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size * MIB) for pid, size in processes.get(gpu, {}).items()]

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", running)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda gpu: SimpleNamespace(used=used[gpu] * MIB))


def test_what_a_child_takes_is_measured() -> None:
    meter = MemoryMeter(os.getpid(), ())
    with subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert (meter.read().host or 0) > 50 * MIB
        child.kill()
    assert meter.read().gpu is None


def test_where_the_kernel_shows_no_shares_the_resident_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: psutil.Process) -> None:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", denied)
    meter = MemoryMeter(os.getpid(), ())
    with subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert (meter.read().host or 0) > 50 * MIB
        child.kill()


def test_of_several_gpus_the_one_with_the_most_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    used, processes = {"a": 100, "b": 100}, {"a": {os.getpid(): 30, 1: 70}, "b": {os.getpid(): 80}}
    driver(monkeypatch, used, processes)
    assert MemoryMeter(os.getpid(), ("a", "b")).read().gpu == 80 * MIB


def test_where_the_driver_does_not_know_the_processes_the_growth_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"a": 100}
    driver(monkeypatch, used, {"a": {999_999_999: 70}})
    meter = MemoryMeter(os.getpid(), ("a",))
    used["a"] = 450
    assert meter.read().gpu == 350 * MIB


def test_a_driver_that_fails_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    monkeypatch.setattr(pynvml, "nvmlInit", fails)
    assert MemoryMeter(os.getpid(), ("a",)).read().gpu is None


def test_a_server_that_has_ended_or_has_no_process_is_not_measured() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert MemoryMeter(ended.pid, ()).read().host is None
    assert MemoryMeter(None, ()).read().host is None
