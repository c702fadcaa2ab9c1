"""Kept engines as a person reads them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.local.printing import age
from argosy.planning.amounts import counted, gib
from argosy.planning.builds.uses import EngineUses
from argosy_agent.engines.inventory import Half, Held
from argosy_agent.engines.manifest import Manifest

_HEADINGS = ("Key", "Builder", "Precision", "Architecture", "Size", "Age", "Asked", "Model", "Accuracy", "Used by")
_MIB = 1 << 20
_KEY = 12
"""How many digits of a key tell engines apart for people."""


def engine_table(uri: str, held: Sequence[Held], uses: EngineUses, now: datetime) -> RenderableType:
    """Return the engines of one store, newest first, and what of it belongs to none."""
    table = Table(title=f"Engines of {uri}", title_justify="left", expand=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("Key", "Size", "Age", "Asked"))
    kept = [each for each in held if each.is_engine]
    for each in sorted(kept, key=lambda each: (-each.used_at, each.key)):
        table.add_row(*_row(each, uses, now), style="red" if each.problem else None)
    halves = [half for each in held for half in each.halves]
    lines: list[RenderableType] = [table, Text(_sum(len(kept), sum(map(_size, kept))))]
    if halves:
        size = _amount(sum(half.size for half in halves))
        lines.append(Text(f"{size} beside them belong to builds that run or did not end: argosy engines gc"))
    return Group(*lines)


def engine_document(uri: str, held: Held, uses: EngineUses) -> dict[str, Any]:
    """Return one engine as JSON has it: its manifest, and what is known of it beside."""
    manifest = held.manifest
    return {
        "key": held.key,
        "store": uri,
        **({} if manifest is None else {**asdict(manifest), "size": manifest.size}),
        "problem": held.problem,
        "accuracies": [asdict(each) for each in held.accuracies],
        "usedBy": list(uses.of(held.key, held.requests)),
        "usedAt": _time(held.used_at).isoformat(),
    }


def collected(gone: Held | Half, now: datetime, dry_run: bool) -> str:
    """Return one line of what is removed, and why."""
    done = "would remove" if dry_run else "removed"
    if isinstance(gone, Half):
        when = age(now - _time(gone.changed_at))
        return f"{done} {gone.place}: {_amount(gone.size)} of a build that did not end, {when} old"
    why = gone.problem or f"nobody uses it, and it was last asked for {age(now - _time(gone.used_at))} ago"
    if gone.manifest is None:
        return f"{done} {gone.key}: {why}"
    each = gone.manifest
    what = " ".join(filter(None, (each.builder, each.precision, each.architecture)))
    return f"{done} {gone.key}: {what}, {_amount(each.size)}, of {each.model.uri}: {why}"


def total(gone: Sequence[Held | Half], dry_run: bool) -> str:
    """Return what was removed in all."""
    engines = sum(isinstance(each, Held) for each in gone)
    size = sum(each.size if isinstance(each, Half) else _size(each) for each in gone)
    done = "would be removed" if dry_run else "removed"
    return (
        f"{counted(engines, 'engine')} and {counted(len(gone) - engines, 'unfinished build')}, {_amount(size)}, {done}"
    )


def _row(held: Held, uses: EngineUses, now: datetime) -> tuple[str, ...]:
    manifest, key = held.manifest, held.key[:_KEY]
    asked, users = age(now - _time(held.used_at)), ", ".join(map(_brief, uses.of(held.key, held.requests))) or "-"
    if manifest is None:
        return key, "", "", "", "", "", asked, held.problem, "", users
    return (
        key,
        manifest.builder,
        manifest.precision or "as stored",
        manifest.architecture,
        _amount(manifest.size),
        age(now - _created(manifest)),
        asked,
        held.problem or manifest.model.uri,
        _accuracy(held),
        users,
    )


def _created(manifest: Manifest) -> datetime:
    """When it was built; by a clock that may be wrong, and a text that people may have edited."""
    try:
        created = datetime.fromisoformat(manifest.created)
    except ValueError:
        return _time(0)
    return created if created.tzinfo else created.replace(tzinfo=UTC)


def _accuracy(held: Held) -> str:
    """What was measured last, or why nothing was."""
    if not held.accuracies:
        skips = sorted({each.skip for each in held.requests if each.skip})
        return f"skipped: {skips[0]}" if skips else "not measured"
    report = held.accuracies[-1]
    return f"{report.metric or 'script'} {report.value:.4g}{'' if report.passed else ' (too low)'}"


def _brief(identity: str) -> str:
    """`namespace/name`: all of them are models."""
    return identity.rpartition(" ")[2]


def _amount(size: int) -> str:
    return gib(size) if size >= _MIB else f"{size / 1024:.3g} KiB"


def _size(held: Held) -> int:
    return held.manifest.size if held.manifest else 0


def _sum(engines: int, size: int) -> str:
    return f"{counted(engines, 'engine')}, {_amount(size)}"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
