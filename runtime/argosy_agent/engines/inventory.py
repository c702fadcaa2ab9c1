"""The contents of an engine cache, from the names, sizes and times of its files. Pure.

Files of other names belong to others, and are not reported.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from argosy_agent.contract.builds import AccuracyReport, BuildRequest
from argosy_agent.transfer.sinks.sink import Stored

from .manifest import EngineFile, Manifest

MANIFEST = "manifest.json"
ATTEMPT = re.compile(r"[0-9a-f]{16}")
UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.part")
"""A manifest whose writer was killed before it was renamed."""
RETAINED = ("accuracy", "requests")
LEASES = "leases"
"""Below a key: a file for each build that runs, which writes it again and again."""
SHARED = "shared"
"""The phase under which builds keep what they have in common, such as TensorRT's timing cache: it belongs to no engine
and is no left-over."""


@dataclass(frozen=True, slots=True)
class Half:
    """Files that belong to no engine: of a build that runs, or of one that was killed.

    `path` is the folder or file, below the store's URI. `changed_at` is when the newest of them was written, in seconds
    since 1970.
    """

    path: str
    size: int
    changed_at: float


@dataclass(frozen=True, slots=True)
class StoredEngine:
    """The contents of one key.

    `problem` says why it cannot be used; `manifest` is None where it cannot be read, or is not there. `broken`: it will
    never be of use again. `requests` are the builds that requested it, `used_at` is when one last did, or when it was
    published. `leased_at` is when a build of this key last renewed its lease, in seconds since 1970; 0 where none did.
    """

    key: str
    manifest: Manifest | None = None
    problem: str = ""
    broken: bool = False
    requests: tuple[BuildRequest, ...] = ()
    accuracies: tuple[AccuracyReport, ...] = ()
    used_at: float = 0.0
    halves: tuple[Half, ...] = ()
    leased_at: float = 0.0

    @property
    def is_engine(self) -> bool:
        """Whether a manifest stands here, be it of no use."""
        return self.manifest is not None or bool(self.problem)


def differences(manifest: Manifest, stored: Iterable[Stored]) -> Iterable[str]:
    """Yield the differences between the `stored` files and a manifest, by names and sizes, in words."""
    named: Mapping[str, EngineFile] = {file.name: file for file in manifest.files}
    there = {file.name: file for file in stored}
    for name in sorted(named.keys() - there.keys()):
        yield f"{name} is missing"
    for name in sorted(there.keys() - named.keys()):
        yield f"{name} is there and belongs to nothing"
    for name, file in named.items():
        if name in there and there[name].size != file.size:
            yield f"{name} has {there[name].size} bytes in place of {file.size}"


def below(stored: Iterable[Stored], folder: str) -> list[Stored]:
    """Return the files in a folder, by their names below it."""
    start = f"{folder}/"
    return [
        Stored(file.name.removeprefix(start), file.size, file.mark, file.changed_at)
        for file in stored
        if file.name.startswith(start)
    ]


def last_used(stored: Iterable[Stored]) -> float:
    """Return when the newest of a key's manifest and requests was written; 0 where there are none."""
    return max(
        (file.changed_at for file in stored if file.name == MANIFEST or file.name.startswith("requests/")), default=0.0
    )


def last_leased(stored: Iterable[Stored]) -> float:
    """Return when a build of a key last renewed its lease; 0 where none did."""
    return max((file.changed_at for file in stored if file.name.startswith(f"{LEASES}/")), default=0.0)


def halves(key: str, stored: Iterable[Stored], attempt: str | None) -> tuple[Half, ...]:
    """Return the files below a key that belong to no engine.

    `attempt` is that of its manifest, None where there is no manifest.
    """
    groups: dict[str, list[Stored]] = {}
    for file in stored:
        first, slash, rest = file.name.partition("/")
        if first == "phases" and rest.startswith(f"{SHARED}/"):
            continue
        left = first in ("phases", LEASES) or (ATTEMPT.fullmatch(first) and first != attempt)
        if (slash and (left or (first in RETAINED and attempt is None))) or (not slash and UNFINISHED.fullmatch(first)):
            groups.setdefault(first, []).append(file)
    return tuple(
        Half(f"{key}/{first}", sum(file.size for file in files), max(file.changed_at for file in files))
        for first, files in sorted(groups.items())
    )


@dataclass(frozen=True, slots=True)
class Garbage:
    """Engines that are not used, and files that belong to none."""

    engines: tuple[StoredEngine, ...]
    halves: tuple[Half, ...]


def garbage(
    entries: Iterable[StoredEngine], is_used: Callable[[StoredEngine], bool] | None, before: float, running_since: float
) -> Garbage:
    """Return what was last written or requested before `before`, in seconds since 1970, and is of no use.

    An engine goes where `is_used` returns False, or where it is broken; without `is_used` its use is not known, and
    only broken ones go. An engine that a newer release wrote stays. Files that belong to no engine stay while they are
    younger: their build may be running, and would resume its phases. Nothing goes under a key whose lease a build
    renewed since `running_since`, however old its files are.
    """
    unleased = tuple(entry for entry in entries if entry.leased_at < running_since)
    return Garbage(
        tuple(entry for entry in unleased if _is_garbage(entry, is_used) and entry.used_at < before),
        tuple(half for entry in unleased for half in entry.halves if half.changed_at < before),
    )


def _is_garbage(entry: StoredEngine, is_used: Callable[[StoredEngine], bool] | None) -> bool:
    if not entry.is_engine or (entry.problem and not entry.broken):
        return False
    return entry.broken or (is_used is not None and not is_used(entry))
