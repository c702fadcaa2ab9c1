"""The result of a profile at a terminal: a row for each point, and the proposal in words."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.bench.profile.points import Point, Sweep
from argosy.bench.profile.proposal import Proposal, knee, latency
from argosy.bench.profile.settings import gpu_memory
from argosy.planning.amounts import gib


def tables(title: str, measured: Sweep, proposal: Proposal | None) -> RenderableType:
    """Return all of a profile for people."""
    table = Table("instances", "batch", "rows/s", "p50", "p95", "host memory", "GPU memory", "", title=title)
    knees = {knee(measured.curve(count)) for count in measured.instances}
    for point in measured.points:
        marks = ["knee"] if point in knees else []
        marks += ["proposed"] if proposal is not None and point == proposal.point else []
        table.add_row(*_cells(point), ", ".join(marks))
    return Group(table, Text(_sentence(proposal))) if proposal is not None else table


def no_proposal(measured: Sweep, budget: float | None) -> str:
    """Return that no setting keeps the budget, and the nearest one."""
    nearest = min(measured.points, key=latency)
    return (
        f"--latency-budget: nothing keeps {_ms(budget or 0.0)}: a request waits for the batch before it and its own, "
        f"which with {nearest.instances} x batches of {nearest.batch} takes {_ms(latency(nearest))}. Allow that, "
        "or make the model faster"
    )


def _cells(point: Point) -> list[str]:
    gpu = gib(point.memory.gpu) if point.memory.gpu else "-"
    rows = f"{point.throughput:.1f}"
    return [str(point.instances), str(point.batch), rows, _ms(point.p50), _ms(point.p95), gib(point.memory.host), gpu]


def _sentence(proposal: Proposal) -> str:
    point = proposal.point
    parts = [f"instances: {point.instances}", f"maxBatchSize: {point.batch}"]
    if point.batch > 1:
        parts.append(f"maxQueueDelayMicroseconds: {round(proposal.delay * 1e6)}")
    if proposal.preferred:
        parts.append(f"preferredBatchSizes: {[*proposal.preferred, point.batch]}")
    memory = gpu_memory(point.memory, point.instances)
    parts += [f"gpuMemory: {memory}"] if memory else []
    most = f"{point.throughput:.1f} rows/s, a request within {_ms(proposal.latency)}"
    return f"proposed: {', '.join(parts)} ({most})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
