"""The windows of a pool's servers to what is known of its members: several servers and versions together."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from .signals import GpuSignals, PoolSignals
from .summing import Part, signals_of
from .targets import PoolTargets
from .windows import ServerWindow

STALE_S = 60.0
"""What is older than this, and than three of the server's readings are apart, is not known any more."""


def pool_signals(
    pool: PoolTargets, windows: Mapping[str, ServerWindow], clock: float, now: datetime, source: str = ""
) -> PoolSignals:
    """Return what is known of a pool: `clock` is the present time of the windows' clock, and `now` the same for people.

    `windows` are by server. A member of which no server has been measured twice is not in it.
    """
    fresh = {
        target.server: windows[target.server]
        for target in pool.targets
        if target.server in windows and is_fresh(windows[target.server], clock)
    }
    parts: dict[tuple[str, int], list[Part]] = {}
    unmeasured: dict[str, set[str]] = {}
    for target in pool.targets:
        measured = _parts(target.server, fresh.get(target.server), clock)
        for model, member in target.serves.items():
            for version, part in measured.get(model, ()):
                parts.setdefault((member, version), []).append(part)
            if model not in measured:
                unmeasured.setdefault(member, set()).add(target.server)
    versions = {key: signals_of(every, now, unmeasured.get(key[0], ())) for key, every in parts.items()}
    together: dict[str, list[tuple[str, int]]] = {}
    for key in parts:
        together.setdefault(key[0], []).append(key)
    return PoolSignals(
        members={
            member: versions[keys[0]]
            if len(keys) == 1
            else signals_of([part for key in keys for part in parts[key]], now, unmeasured.get(member, ()))
            for member, keys in together.items()
        },
        versions=versions,
        gpus=tuple(gpu for server, window in sorted(fresh.items()) for gpu in _gpus(server, window)),
        source=source,
    )


def is_fresh(window: ServerWindow, clock: float) -> bool:
    """Return whether its newest reading can stand for the present."""
    spacing = window.steps[-1].until - window.steps[-1].since if window.steps else 0.0
    return abs(clock - window.latest.at) <= max(STALE_S, 3 * spacing)


def _parts(server: str, window: ServerWindow | None, clock: float) -> dict[str, list[tuple[int, Part]]]:
    """Return the versions of each model that the server has been measured with twice, by the model's name."""
    versions: dict[str, list[tuple[int, Part]]] = {}
    if window is None or not window.steps:
        return versions
    age, newest = max(0.0, clock - window.latest.at), window.newest()
    for key, series in window.latest.models.items():
        grown = window.increase(key)
        part = Part(server, age, window.span_s, series, grown, newest.increase(key), newest.span_s)
        versions.setdefault(key[0], []).append((key[1], part))
    return versions


def _gpus(server: str, window: ServerWindow) -> Iterator[GpuSignals]:
    for index, (uuid, gpu) in enumerate(sorted(window.latest.gpus.items())):
        yield GpuSignals(server, index, uuid, gpu.utilization, gpu.memory_used, gpu.memory_total)
