"""NVML of a machine with one played GPU."""

import os
from types import SimpleNamespace


class NVMLError(Exception):
    """Raised by nothing here."""


def nvmlInit() -> None:  # noqa: N802
    """Do nothing: there is a driver."""


def nvmlShutdown() -> None:  # noqa: N802
    """Do nothing: there is nothing to end."""


def nvmlDeviceGetCount() -> int:  # noqa: N802
    return 1


def nvmlDeviceGetHandleByIndex(index: int) -> int:  # noqa: N802
    return index


def nvmlDeviceGetCudaComputeCapability(handle: int) -> tuple[int, int]:  # noqa: N802
    major, minor = os.environ.get("PLAYED_COMPUTE_CAPABILITY", "9.0").split(".")
    return int(major), int(minor)


def nvmlDeviceGetUUID(handle: int) -> str:  # noqa: N802
    return f"GPU-played-{handle}"


def nvmlDeviceGetName(handle: int) -> str:  # noqa: N802
    return "A played GPU"


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:  # noqa: N802
    return SimpleNamespace(total=1 << 34, free=1 << 34, used=0)
