"""Whether the host has the memory that an engine's weights need while it sleeps.

vLLM copies them into page-locked memory of the host (level 1). What does not fit there ends the whole container.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from argosy_runtime.cpus import control_groups
from argosy_runtime.errors import unavailable

ROUNDING: Final = 2
"""torch rounds each page-locked allocation up to a power of two: to less than twice its size."""
_WEIGHTS: Final = ("*.safetensors", "*.bin", "*.pt")
_GIB: Final = 1 << 30
_PROCESS: Final = Path("/")


def check_host_memory(instance: str, model: Path, root: Path = _PROCESS) -> None:
    """Raise ServingError (UNAVAILABLE) where the weights in a model's folder may not fit into the host's memory."""
    needed, free = ROUNDING * weight_bytes(model), available_bytes(root)
    if needed > free:
        raise unavailable(
            f"model instance '{instance}' cannot sleep: its weights need up to {needed / _GIB:.1f} GiB of the host's "
            f"memory, and {free / _GIB:.1f} GiB are free"
        )


def weight_bytes(model: Path) -> int:
    """Return the size of the weights in a model's folder, 0 where it is none."""
    sizes = {pattern: sum(file.stat().st_size for file in model.glob(pattern)) for pattern in _WEIGHTS}
    return next((size for size in sizes.values() if size), 0)


def available_bytes(root: Path) -> int:
    """Return the memory that this process can still get, by the machine and the control groups below `root`."""
    return max(0, min([_machine(root), *_rooms(root)]))


def _machine(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return 0


def _rooms(root: Path) -> Iterator[int]:
    """Yield the room in this process's groups, of version 1 or 2. Pages of files that are not in use count as free."""
    for version, folder in control_groups(root, "memory"):
        most, used = (
            ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        )
        limit, usage = _number(folder / most), _number(folder / used)
        if limit is not None and usage is not None:
            yield limit - usage + _inactive(folder / "memory.stat")


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _inactive(file: Path) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split(" ", 1) for line in lines)
    return int(values.get("total_inactive_file", values.get("inactive_file", "0")))
