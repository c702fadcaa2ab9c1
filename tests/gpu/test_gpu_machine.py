"""The machine's GPUs as NVML has them are those that torch sees."""

import subprocess
import sys

import torch

from argosy.local.machine import this_machine
from argosy_runtime.execution.devices import visible_gpus
from argosy_runtime.telemetry.machine.gpu import Gpu, GpuReader


def test_devices_are_those_of_torch(gpu: torch.device) -> None:
    devices = visible_gpus()
    assert len(devices) == torch.cuda.device_count()
    properties = torch.cuda.get_device_properties(gpu)
    assert devices[0].name == properties.name
    assert devices[0].uuid.removeprefix("GPU-") == str(properties.uuid)
    assert devices[0].compute_capability == f"{properties.major}.{properties.minor}"
    assert devices[0].memory >= properties.total_memory


def test_the_machine_is_a_node_with_these_gpus() -> None:
    node = this_machine()
    assert [device.uuid for device in node.gpus] == [device.uuid for device in visible_gpus()]
    assert node.product == torch.cuda.get_device_name(0)


def test_memory_that_a_process_takes_is_in_the_metrics(gpu: torch.device) -> None:
    reader = GpuReader([Gpu(device.ordinal, device.uuid, device.name) for device in visible_gpus()])
    before = used(reader)
    program = (
        "import torch; kept = torch.zeros(2**31, dtype=torch.uint8, device='cuda'); print('ready', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert used(reader) >= before + 2**31
        process.communicate(b"\n")


def used(reader: GpuReader) -> float:
    """Return the bytes in use of the first GPU."""
    families = {family.name: family for family in reader.read()}
    return float(families["nv_gpu_memory_used_bytes"].samples[0].value)
