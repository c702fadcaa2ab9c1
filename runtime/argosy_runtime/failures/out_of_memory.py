"""Recognizes failures for want of memory, by exceptions, by their messages, and by the kernel's counter.

Frameworks have no exception in common for this, and some have a message alone; so both are looked at, and only messages
that mean nothing else.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from argosy_runtime.errors import FailureReason, ServingError

GPU_WORDS: Final = (
    r"CUDA out of memory|CUDA error: out of memory|CUDA failure 2\b|CUDA's \w+ failed with 2:|HIP out of memory"
    r"|cuda_?error_?out_?of_?memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED"
    r"|Error Code \d+: Out ?Of ?Memory"
)
HOST_WORDS: Final = (
    r"\bMemoryError\b|std::bad_alloc|\bbad allocation\b|Cannot allocate memory|can't allocate memory"
    r"|DefaultCPUAllocator: not enough|Failed to allocate memory for requested buffer"
    r"|Available memory of \d+ is smaller than requested bytes"
)
_WORDS = re.compile(f"{GPU_WORDS}|{HOST_WORDS}", re.IGNORECASE)

_TYPE = "OutOfMemoryError"
"""The name of torch's exception, which other frameworks use, too; none of them is imported for the check."""

COUNTERS = (("0::", ".", "memory.events"), (":memory:", "memory", "memory.oom_control"))
"""For cgroups of version 2 and 1: the mark in the lines of /proc/self/cgroup, the folder, the counter's file."""


def is_out_of_memory(fault: BaseException) -> bool:
    """Return whether this exception, or one of its causes, is about memory."""
    return any(_is_of_memory(cause) for cause in causes_of(fault))


def reason_of(fault: BaseException) -> FailureReason:
    """Return the reason to count for a request that failed for this exception of a model."""
    return FailureReason.OUT_OF_MEMORY if is_out_of_memory(fault) else FailureReason.BACKEND


def with_reason(error: ServingError) -> ServingError:
    """Return the error, with the reason OUT_OF_MEMORY where a backend reported that as a failure of its own."""
    if error.reason is FailureReason.BACKEND:
        error.reason = reason_of(error)
    return error


def says_out_of_memory(text: str) -> bool:
    """Return whether a framework's message is about memory."""
    return _WORDS.search(text) is not None


def causes_of(fault: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """Yield an exception and its causes; with `contexts` also those during whose handling it was raised."""
    seen: set[int] = set()
    cause: BaseException | None = fault
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or (cause.__context__ if contexts else None)


def _is_of_memory(fault: BaseException) -> bool:
    if isinstance(fault, MemoryError) or any(kind.__name__ == _TYPE for kind in type(fault).__mro__):
        return True
    return says_out_of_memory(str(fault))


def oom_kills(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many processes of this container the kernel killed for want of memory; 0 without a counter."""
    for counter in (*_own_counters(cgroups, own), *(cgroups / folder / name for _, folder, name in COUNTERS)):
        try:
            text = counter.read_text()
        except OSError:
            continue
        if match := re.search(r"^oom_kill (\d+)$", text, re.MULTILINE):
            return int(match[1])
    return 0


class OomKills:
    """Attributes killed processes to want of memory: as many of them as the kernel has counted since the start."""

    def __init__(self, count: Callable[[], int] = oom_kills) -> None:
        self._count = count
        self._reported = count()

    def one_more(self) -> bool:
        """Return whether the kernel's count of processes killed for want of memory rose since the last call."""
        if self._count() <= self._reported:
            return False
        self._reported += 1
        return True


def _own_counters(cgroups: Path, own: Path) -> list[Path]:
    """Return the counters of this process's cgroups below those of the machine. A container, which sees its own as the
    root, has none.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    return [
        cgroups / folder / line.partition(mark)[2].lstrip("/") / name
        for mark, folder, name in COUNTERS
        for line in lines
        if mark in line and not line.endswith(":/")
    ]


OOM_KILLS: Final = OomKills()
