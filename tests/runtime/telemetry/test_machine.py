"""Readings of the machine: texts of /proc, a played driver of GPUs, readings that fail or grow old."""

from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
from prometheus_client.parser import text_string_to_metric_families

from argosy_runtime.telemetry.exposition import Family, exposition
from argosy_runtime.telemetry.machine.cpu import CpuReader, cpu_families, cpu_time, memory
from argosy_runtime.telemetry.machine.gpu import Gpu, GpuReader
from argosy_runtime.telemetry.machine.sampling import MachineSampling

GPUS = (Gpu(0, "GPU-a", "H200"), Gpu(1, "GPU-b", "H200"))


def values(families: list[Family]) -> dict[str, float]:
    """Return samples by name and, where there is one, GPU, as a scraper reads them."""
    return {
        f"{sample.name.removesuffix('_total')} {sample.labels.get('gpu_uuid', '')}".strip(): sample.value
        for family in text_string_to_metric_families(exposition(families).decode())
        for sample in family.samples
    }


class Driver:
    """NVML as it is asked here; `silent` questions are not supported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = 0
        self.energy_mj = 5_000_000
        self.silent: set[str] = set()
        self.lost: set[str] = set()
        answers = {
            "UtilizationRates": lambda uuid: SimpleNamespace(gpu=37 if uuid == "GPU-a" else 100, memory=3),
            "MemoryInfo": lambda uuid: SimpleNamespace(total=150_000, used=100_000, free=50_000),
            "PowerUsage": lambda uuid: 321_500,
            "PowerManagementLimit": lambda uuid: 700_000,
            "TotalEnergyConsumption": lambda uuid: self.energy_mj,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", self._answering(name, answer))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", self._handle)
        monkeypatch.setattr(pynvml, "nvmlInit", self._init)

    def _init(self) -> None:
        self.opened += 1

    def _handle(self, uuid: str) -> str:
        if uuid in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return uuid

    def _answering(self, name, answer):  # type: ignore[no-untyped-def]
        def ask(uuid: str) -> object:
            if name in self.silent:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return answer(uuid)

        return ask


def test_gpus_are_identified_by_their_uuid_in_tritons_units(monkeypatch):
    driver = Driver(monkeypatch)
    reader = GpuReader(GPUS)
    assert values(reader.read())["nv_energy_consumption GPU-a"] == 0
    driver.energy_mj += 2_500
    reported = values(reader.read())
    assert reported["nv_gpu_utilization GPU-a"] == 0.37
    assert reported["nv_gpu_utilization GPU-b"] == 1
    assert reported["nv_gpu_memory_total_bytes GPU-a"] == 150_000
    assert reported["nv_gpu_memory_used_bytes GPU-a"] == 100_000
    assert reported["nv_gpu_power_usage GPU-b"] == 321.5
    assert reported["nv_gpu_power_limit GPU-b"] == 700
    assert reported["nv_energy_consumption GPU-a"] == 2.5
    assert driver.opened == 1


def test_which_gpu_is_which_is_reported(monkeypatch):
    Driver(monkeypatch)
    info = GpuReader(GPUS).read()[0]
    assert [sample.labels for sample in info.samples] == [
        {"gpu_uuid": "GPU-a", "index": "0", "name": "H200"},
        {"gpu_uuid": "GPU-b", "index": "1", "name": "H200"},
    ]


def test_what_the_driver_does_not_report_is_left_out(monkeypatch):
    driver = Driver(monkeypatch)
    driver.silent = {"UtilizationRates", "TotalEnergyConsumption"}
    driver.lost = {"GPU-b"}
    reported = values(GpuReader(GPUS).read())
    assert "nv_gpu_memory_used_bytes GPU-a" in reported
    assert not [name for name in reported if "utilization" in name or "energy" in name]
    assert [name for name in reported if "GPU-b" in name] == ["argosy_gpu_info GPU-b"]


def test_without_gpus_the_driver_is_not_queried(monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: pytest.fail("asked"))
    assert values(GpuReader(()).read()) == {}


STAT = "cpu  {user} 10 20 {idle} 30 5 5 0 7 7\ncpu0 1 1 1 1 1 1 1 0 0 0\nintr 5\n"
MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nHugePages_Total:       0\n"


def test_cpus_work_for_a_share_of_the_time_since_the_last_reading(tmp_path: Path):
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "stat").write_text(STAT.format(user=100, idle=100))
    reader = CpuReader(tmp_path)
    assert values(reader.read()) == {
        "nv_cpu_memory_total_bytes": 1000 * 1024,
        "nv_cpu_memory_used_bytes": 600 * 1024,
    }
    (tmp_path / "stat").write_text(STAT.format(user=130, idle=170))
    assert values(reader.read())["nv_cpu_utilization"] == 0.3
    assert "nv_cpu_utilization" not in values(reader.read()), "no time has passed"


def test_a_counter_that_goes_back_is_no_negative_share():
    assert cpu_time(STAT.format(user=50, idle=900)).utilization_since(cpu_time(STAT.format(user=60, idle=0))) == 0


@pytest.mark.parametrize("text", ["", "intr 5\n", "cpu\n"])
def test_texts_that_are_none(text):
    with pytest.raises(ValueError, match="/proc/stat"):
        cpu_time(text)
    with pytest.raises(ValueError, match="MemAvailable"):
        memory(text)


class Played:
    """A reader with readings of the test's."""

    def __init__(self) -> None:
        self.fails = False
        self.count = 0

    def read(self) -> list[Family]:
        if self.fails:
            raise OSError("the driver is gone")
        self.count += 1
        return cpu_families(total=self.count)


def test_a_reader_that_fails_is_reported_once_and_its_last_values_grow_old(caplog):
    now, reader = [0.0], Played()
    sampling = MachineSampling([(reader, cpu_families())], 2.0, lambda: now[0])
    assert values(sampling.families()) == {}
    sampling.sample()
    reader.fails = True
    for _ in range(2):
        now[0] += 5.0
        sampling.sample()
        assert values(sampling.families()) == {"nv_cpu_memory_total_bytes": 1}
    assert caplog.text.count("the driver is gone") == 1
    now[0] += 0.1
    assert [family.name for family in sampling.families()] == [family.name for family in cpu_families()]
    assert values(sampling.families()) == {}
    reader.fails = False
    sampling.sample()
    assert values(sampling.families()) == {"nv_cpu_memory_total_bytes": 2}
