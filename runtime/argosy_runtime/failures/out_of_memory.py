"""Whether something failed for want of memory, by the exceptions and the words of those who ran short of it.

Frameworks have no exception in common for this, and some have none at all but their words; so both are looked at, and
only words that mean nothing else.
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
"""What torch calls it, and frameworks after it; none of them is imported to ask."""

COUNTERS = (("0::", ".", "memory.events"), (":memory:", "memory", "memory.oom_control"))
"""Of cgroups' version 2 and 1: how its line of /proc/self/cgroup begins, its folder, the file of the counter."""


def is_out_of_memory(fault: BaseException) -> bool:
    """Return whether this exception, or one that it came of, says so."""
    return any(_says_so(each) for each in causes_of(fault))


def reason_of(fault: BaseException) -> FailureReason:
    """As what a request counts that failed for this exception of a model."""
    return FailureReason.OUT_OF_MEMORY if is_out_of_memory(fault) else FailureReason.BACKEND


def with_reason(error: ServingError) -> ServingError:
    """Return the error, counted as want of memory where a backend told of that as of any failure of its own."""
    if error.reason is FailureReason.BACKEND:
        error.reason = reason_of(error)
    return error


def says_out_of_memory(text: str) -> bool:
    """Return whether a framework's words do."""
    return _WORDS.search(text) is not None


def causes_of(fault: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """Yield an exception and those that it came of; with `contexts` also those that it was raised while handling."""
    seen: set[int] = set()
    each: BaseException | None = fault
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (each.__context__ if contexts else None)


def _says_so(fault: BaseException) -> bool:
    if isinstance(fault, MemoryError) or any(kind.__name__ == _TYPE for kind in type(fault).__mro__):
        return True
    return says_out_of_memory(str(fault))


def oom_kills(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how often the kernel has killed for want of memory in this process' container: 0 where nobody counts."""
    for counter in (*_own_counters(cgroups, own), *(cgroups / folder / name for _, folder, name in COUNTERS)):
        try:
            text = counter.read_text()
        except OSError:
            continue
        if found := re.search(r"^oom_kill (\d+)$", text, re.MULTILINE):
            return int(found[1])
    return 0


class OomKills:
    """Tells of processes that were killed, one after the other, whether it was for want of memory: of as many as the
    kernel has counted since the first question was prepared.
    """

    def __init__(self, count: Callable[[], int] = oom_kills) -> None:
        self._count = count
        self._told = count()

    def one_more(self) -> bool:
        """Return whether the kernel's count of processes killed for want of memory rose since the last call."""
        if self._count() <= self._told:
            return False
        self._told += 1
        return True


def _own_counters(cgroups: Path, own: Path) -> list[Path]:
    """Return where the whole machine's cgroups are mounted, those of this process; a container sees its own as the
    root.
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
