"""This machine as a Node: its NVIDIA GPUs, or one CPU device with its memory."""

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pynvml

from argosy.planning.facts import Gpu, Node

_CPUS = {"x86_64": "amd64", "aarch64": "arm64"}
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def this_machine() -> Node:
    """Return this machine, without GPUs that CUDA_VISIBLE_DEVICES hides."""
    return _gpu_node(os.environ.get("CUDA_VISIBLE_DEVICES")) or cpu_node()


def cpu_node() -> Node:
    """Return this machine without its GPUs: one slot with all the memory that its processes may use."""
    slot = Gpu(index=0, memory=_memory(), is_cpu=True)
    return Node(name=_name(), gpus=(slot,), product=platform.machine(), labels=_labels())


def visible(uuids: Sequence[str], setting: str | None) -> list[int]:
    """Return the device indexes that a value of CUDA_VISIBLE_DEVICES leaves.

    Its entries are indexes or UUID prefixes; those after the first unknown one are ignored, as by CUDA.
    """
    if setting is None:
        return list(range(len(uuids)))
    chosen: list[int] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdigit() and int(entry) < len(uuids):
            chosen.append(int(entry))
        elif entry.startswith("GPU-") and any(uuid.startswith(entry) for uuid in uuids):
            chosen.append(next(index for index, uuid in enumerate(uuids) if uuid.startswith(entry)))
        else:
            break
    return chosen


def _gpu_node(setting: str | None) -> Node | None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return _read_gpus(setting)
    finally:
        pynvml.nvmlShutdown()


def _read_gpus(setting: str | None) -> Node | None:
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    uuids = [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    indexes = sorted(visible(uuids, setting))
    if not indexes:
        return None
    gpus = tuple(
        Gpu(index=index, memory=int(pynvml.nvmlDeviceGetMemoryInfo(handles[index]).total), uuid=uuids[index])
        for index in indexes
    )
    first = handles[indexes[0]]
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(first)
    return Node(
        name=_name(),
        gpus=gpus,
        product=str(pynvml.nvmlDeviceGetName(first)),
        compute_capability=f"{major}.{minor}",
        nvlink=joined(indexes, lambda a, b: _linked(handles[a], handles[b])),
        labels=_labels(),
        boot_id=BOOT_ID.read_text().strip() if BOOT_ID.exists() else "",
    )


def joined(indexes: Sequence[int], linked: Callable[[int, int], bool]) -> tuple[frozenset[int], ...]:
    """Return the groups of two or more devices that links join, directly or indirectly."""
    groups: list[set[int]] = []
    for index in indexes:
        touching = [group for group in groups if any(linked(index, other) for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append({index}.union(*touching))
    return tuple(frozenset(group) for group in groups if len(group) > 1)


def _linked(one: object, other: object) -> bool:
    try:
        status = pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError:
        return False
    return bool(status == pynvml.NVML_P2P_STATUS_OK)


def _labels() -> dict[str, str]:
    """Return the labels that a kubelet sets: the CPU's architecture by its Go name."""
    machine = platform.machine().lower()
    return {"kubernetes.io/arch": _CPUS.get(machine, machine)}


def _name() -> str:
    return platform.node() or "localhost"


def _memory() -> int:
    total = int(psutil.virtual_memory().total)
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
