"""The engines of a cache as a person reads them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.local.printing import age
from argosy.planning.amounts import gib, quantity
from argosy.planning.builds.uses import EngineUses
from argosy_agent.engines.inventory import Half, StoredEngine
from argosy_agent.engines.manifest import Manifest

_HEADINGS = ("Key", "Builder", "Precision", "Architecture", "Size", "Age", "Requested", "Model", "Accuracy", "Used by")
_MIB = 1 << 20
_KEY_DIGITS = 12
"""How many digits of a key tell engines apart for people."""


def engine_table(uri: str, entries: Sequence[StoredEngine], uses: EngineUses, now: datetime) -> RenderableType:
    """Return the engines of one store, newest first, and the size of what unfinished builds left there."""
    table = Table(title=f"Engines of {uri}", title_justify="left", expand=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("Key", "Size", "Age", "Requested"))
    engines = [entry for entry in entries if entry.is_engine]
    for engine in sorted(engines, key=lambda engine: (-engine.used_at, engine.key)):
        table.add_row(*_row(engine, uses, now), style="red" if engine.problem else None)
    halves = [half for entry in entries for half in entry.halves]
    lines: list[RenderableType] = [table, Text(_sum(len(engines), sum(map(_size, engines))))]
    if halves:
        size = _amount(sum(half.size for half in halves))
        lines.append(Text(f"{size} more belong to builds that run or did not end: argosy engines gc"))
    return Group(*lines)


def engine_document(uri: str, engine: StoredEngine, uses: EngineUses) -> dict[str, Any]:
    """Return one engine as plain values: its manifest, with the store, its problem, measured accuracies and uses."""
    manifest = engine.manifest
    return {
        "key": engine.key,
        "store": uri,
        **({} if manifest is None else {**asdict(manifest), "size": manifest.size}),
        "problem": engine.problem,
        "accuracies": [asdict(report) for report in engine.accuracies],
        "usedBy": list(uses.of(engine.key, engine.requests)),
        "usedAt": _time(engine.used_at).isoformat(),
    }


def removal(entry: StoredEngine | Half, now: datetime, dry_run: bool) -> str:
    """Return the line about one removed entry, with the reason."""
    done = "would remove" if dry_run else "removed"
    if isinstance(entry, Half):
        when = age(now - _time(entry.changed_at))
        return f"{done} {entry.path}: {_amount(entry.size)} of a build that did not end, {when} old"
    why = entry.problem or f"no model uses it, and it was last requested {age(now - _time(entry.used_at))} ago"
    manifest = entry.manifest
    if manifest is None:
        return f"{done} {entry.key}: {why}"
    what = " ".join(filter(None, (manifest.builder, manifest.precision, manifest.architecture)))
    return f"{done} {entry.key}: {what}, {_amount(manifest.size)}, of {manifest.model.uri}: {why}"


def total(removed: Sequence[StoredEngine | Half], dry_run: bool) -> str:
    """Return the line with the count and the size of everything removed."""
    engines = sum(isinstance(entry, StoredEngine) for entry in removed)
    size = sum(entry.size if isinstance(entry, Half) else _size(entry) for entry in removed)
    done = "would be removed" if dry_run else "removed"
    unfinished = quantity(len(removed) - engines, "unfinished build")
    return f"{quantity(engines, 'engine')} and {unfinished}, {_amount(size)}, {done}"


def _row(engine: StoredEngine, uses: EngineUses, now: datetime) -> tuple[str, ...]:
    manifest, key = engine.manifest, engine.key[:_KEY_DIGITS]
    requested = age(now - _time(engine.used_at))
    users = ", ".join(map(_qualified_name, uses.of(engine.key, engine.requests))) or "-"
    if manifest is None:
        return key, "", "", "", "", "", requested, engine.problem, "", users
    return (
        key,
        manifest.builder,
        manifest.precision or "as stored",
        manifest.architecture,
        _amount(manifest.size),
        age(now - _created(manifest)),
        requested,
        engine.problem or manifest.model.uri,
        _accuracy(engine),
        users,
    )


def _created(manifest: Manifest) -> datetime:
    """Return when the engine was built, or the epoch where the manifest's text is no time."""
    try:
        created = datetime.fromisoformat(manifest.created)
    except ValueError:
        return _time(0)
    return created if created.tzinfo else created.replace(tzinfo=UTC)


def _accuracy(engine: StoredEngine) -> str:
    """Return the last measured accuracy, or why none was measured."""
    if not engine.accuracies:
        skips = sorted({request.skip for request in engine.requests if request.skip})
        return f"skipped: {skips[0]}" if skips else "not measured"
    report = engine.accuracies[-1]
    return f"{report.metric or 'script'} {report.value:.4g}{'' if report.passed else ' (too low)'}"


def _qualified_name(identity: str) -> str:
    """Return `namespace/name` of a model's identity."""
    return identity.rpartition(" ")[2]


def _amount(size: int) -> str:
    return gib(size) if size >= _MIB else f"{size / 1024:.3g} KiB"


def _size(engine: StoredEngine) -> int:
    return engine.manifest.size if engine.manifest else 0


def _sum(engines: int, size: int) -> str:
    return f"{quantity(engines, 'engine')}, {_amount(size)}"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
