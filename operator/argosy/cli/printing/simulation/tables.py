"""The outcome at a terminal: who was late how often for how many GPU-hours, how it went, and why it changed."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.cli.workloads import Asked
from argosy.simulation.outcome import Outcome
from argosy.simulation.traces import Floats

_ROWS, _CHANGES = 24, 12
_CELLS = 20


def tables(outcomes: Mapping[str, Sequence[Outcome]], found: Sequence[Asked]) -> RenderableType:
    """Return a summary of all, then for each model how the first of those who decided went about it."""
    first = next(iter(outcomes.values()))
    return Group(_summary(outcomes, found), *(part for each in first for part in _course(each)))


def _summary(outcomes: Mapping[str, Sequence[Outcome]], found: Sequence[Asked]) -> Table:
    table = Table("model", "scaled by", "requests", "late", "p50", "p99", "budget", "GPU-hours", "replicas", "changes")
    for place, asked in enumerate(found):
        for who, every in outcomes.items():
            each = every[place]
            desired = each.timeline.desired if len(each.timeline.desired) else np.zeros(1)
            table.add_row(
                each.name,
                who,
                f"{each.requests:,}",
                f"{each.violations:.2%}",
                _seconds(each.percentile(50)),
                _seconds(each.percentile(99)),
                _seconds(asked.workload.budget_s),
                f"{each.gpu_hours:.2f}",
                f"{desired.min():.0f} to {desired.max():.0f}",
                str(len(each.changes)),
            )
    return table


def _course(outcome: Outcome) -> Iterator[RenderableType]:
    timeline = outcome.timeline
    if len(timeline.at):
        table = Table("time", "requests/s", "replicas", "ready", "instances", "queued", "p99", title=outcome.name)
        most = max(1.0, float(timeline.desired.max()))
        for part in np.array_split(np.arange(len(timeline.at)), min(_ROWS, len(timeline.at))):
            table.add_row(*_row(outcome, part, most))
        yield table
    for change in outcome.changes[:_CHANGES]:
        yield Text(f"{_clock(change.at)}  {change.reason}")
    if len(outcome.changes) > _CHANGES:
        yield Text(f"… and {len(outcome.changes) - _CHANGES} changes more; -o json has all of them")


def _row(outcome: Outcome, part: "np.ndarray[tuple[int], np.dtype[np.int64]]", most: float) -> list[str]:
    """Of a piece of time: means, and the worst of what is bad."""
    timeline = outcome.timeline
    desired = float(timeline.desired[part].mean())
    return [
        _clock(float(timeline.at[part[-1]])),
        f"{timeline.arrivals[part].mean():.1f}",
        f"{'█' * round(_CELLS * desired / most)} {desired:.1f}",
        f"{timeline.ready[part].mean():.1f}",
        f"{timeline.instances[part].mean():.1f}",
        f"{timeline.queued[part].max():.0f}",
        _seconds(_worst(timeline.p99[part])),
    ]


def _worst(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _seconds(value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
