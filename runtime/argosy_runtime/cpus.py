"""The processors that this process may use, by affinity and by the quota of its control group; threads bound to some.

Frameworks count the machine's processors. In a container with a quota of two on a machine of 64 they start 64 threads,
which the kernel then holds up for most of each period.
"""

import ctypes
import errno
import math
import os
import platform
from collections.abc import Collection, Iterator
from pathlib import Path

_OPENMP = "OMP_NUM_THREADS"
# The system call set_mempolicy, for which the C library has no function.
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
_MPOL_BIND = 2
_MOST_NODES = 1024


def cpu_limit() -> int | None:
    """Return how many threads can compute at once in this process, with the processors of the calling thread.

    None where it may use the whole machine.
    """
    usable = cpus_within(len(os.sched_getaffinity(0)), Path("/"))
    return usable if usable < (os.cpu_count() or 1) else None


def limit_threads() -> None:
    """Have OpenMP and the BLAS libraries of this process and its children start no more threads than the limit.

    A number that the environment sets is kept.
    """
    limit = cpu_limit()
    if limit is not None:
        os.environ.setdefault(_OPENMP, str(limit))


def bind(cores: Collection[int]) -> None:
    """Have this thread, and those that it starts from now on, run on these processors alone. Raises OSError."""
    os.sched_setaffinity(0, cores)


def bind_memory(node: int) -> None:
    """Have this thread, and those that it starts from now on, take memory of a NUMA node alone. Raises OSError."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if node >= _MOST_NODES:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    mask = (ctypes.c_ubyte * (_MOST_NODES // 8))()
    mask[node // 8] = 1 << node % 8
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads one bit less than the number that it is given.
    if libc.syscall(number, _MPOL_BIND, ctypes.byref(mask), ctypes.c_ulong(_MOST_NODES + 1)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def cpus_within(affinity: int, root: Path) -> int:
    """Return the smaller of an affinity's processors and the quota, rounded up, in the files below `root`."""
    return max(1, min([affinity, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quotas, in processors, of this process's control groups (of version 1 or 2) and those above."""
    for version, folder in control_groups(root, "cpu"):
        if version == 2:
            yield from _quota(_words(folder / "cpu.max"))
        else:
            yield from _quota(_words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us"))


def control_groups(root: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the folders of this process's control groups and those above, with their version, in files below `root`."""
    for controllers, group in _groups(root / "proc/self/cgroup"):
        if not controllers:
            yield from ((2, folder) for folder in _upwards(root / "sys/fs/cgroup", group))
        elif controller in controllers:
            yield from ((1, folder) for folder in _upwards(root / "sys/fs/cgroup" / ",".join(controllers), group))


def _groups(file: Path) -> Iterator[tuple[list[str], str]]:
    """Yield each hierarchy's controllers (none in version 2) and this process's group in it."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        yield [name for name in controllers.split(",") if name], group


def _upwards(mount: Path, group: str) -> Iterator[Path]:
    """Yield the group's folder and those above it. In a container its own group may be the root, at another path."""
    folder = mount / group.strip("/")
    while folder != mount:
        yield folder
        folder = folder.parent
    yield mount


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _quota(words: list[str]) -> Iterator[float]:
    """Yield the processors of a quota and a period, in microseconds; nothing where there is no quota (max, or -1)."""
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
        yield int(words[0]) / int(words[1])
