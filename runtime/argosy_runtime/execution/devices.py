"""The GPUs of this machine, through NVML; a machine without the driver has none."""

import os
from dataclasses import dataclass

import pynvml


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One visible GPU. `ordinal` counts the devices this process may use; memory in bytes."""

    ordinal: int
    uuid: str
    name: str
    memory: int
    compute_capability: str


def visible_gpus() -> list[GpuDevice]:
    """Return the GPUs that this process may use, in CUDA's order (CUDA_VISIBLE_DEVICES is honoured)."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        every = [_describe(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()
    return _visible(every, os.environ.get("CUDA_VISIBLE_DEVICES"))


def used_fraction(ordinal: int) -> float:
    """Return which part of a visible GPU's memory is in use; 0 where there is no such GPU."""
    gpu = next((gpu for gpu in visible_gpus() if gpu.ordinal == ordinal), None)
    if gpu is None:
        return 0.0
    pynvml.nvmlInit()
    try:
        return float(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)).used / gpu.memory)
    finally:
        pynvml.nvmlShutdown()


def _describe(index: int) -> GpuDevice:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return GpuDevice(
        ordinal=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        compute_capability=f"{major}.{minor}",
    )


def _visible(every: list[GpuDevice], listed: str | None) -> list[GpuDevice]:
    if listed is None:
        return every
    chosen: list[GpuDevice] = []
    for word in filter(None, (part.strip() for part in listed.split(","))):
        matches = [gpu for gpu in every if word == str(gpu.ordinal) or gpu.uuid.startswith(word)]
        if not matches:
            break  # CUDA ignores everything after the first unknown device
        chosen.append(matches[0])
    return [
        GpuDevice(ordinal, gpu.uuid, gpu.name, gpu.memory, gpu.compute_capability) for ordinal, gpu in enumerate(chosen)
    ]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
