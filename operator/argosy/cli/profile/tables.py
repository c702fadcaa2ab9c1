"""The result of a profile at a terminal: a row for each point, and the proposal in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.bench.profile.points import Point, Sweep
from argosy.bench.profile.proposal import Proposal, knee, latency
from argosy.planning.amounts import gib


def tables(
    title: str, measured: Sweep, proposal: Proposal | None, settings: Mapping[str, Any] | None
) -> RenderableType:
    """Return all of a profile for people. `settings`: those that are proposed, as the patch has them."""
    table = Table("instances", "batch", "rows/s", "p50", "p95", "host memory", "GPU memory", "", title=title)
    knees = {knee(measured.curve(count)) for count in measured.instances}
    for point in measured.points:
        marks = ["knee"] if point in knees else []
        marks += ["proposed"] if proposal is not None and point == proposal.point else []
        table.add_row(*_cells(point), ", ".join(marks))
    return Group(table, Text(_sentence(proposal, settings or {}))) if proposal is not None else table


def no_proposal(measured: Sweep, budget: float | None) -> str:
    """Return that no setting keeps the budget, and the nearest one."""
    nearest = min(measured.points, key=latency)
    return (
        f"--latency-budget: nothing keeps {_ms(budget or 0.0)}: a request waits for the batch before it and its own, "
        f"which with {nearest.instances} x batches of {nearest.batch} takes {_ms(latency(nearest))}. Allow that, "
        "or make the model faster"
    )


def _cells(point: Point) -> list[str]:
    memory = [gib(size) if size else "-" for size in (point.memory.host, point.memory.gpu)]
    rows = f"{point.throughput:.1f}"
    return [str(point.instances), str(point.batch), rows, _ms(point.p50), _ms(point.p95), *memory]


def _sentence(proposal: Proposal, settings: Mapping[str, Any]) -> str:
    """Return the settings of the patch in words, with what was measured with them."""
    most = f"{proposal.point.throughput:.1f} rows/s, a request within {_ms(proposal.latency)}"
    return f"proposed: {', '.join(_settings(settings))} ({most})"


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting, those within others as well; of one that is to be left out, that."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        else:
            yield f"no {name}" if value is None else f"{name}: {value}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
