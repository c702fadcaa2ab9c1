"""The result at a terminal: late requests and GPU-hours of each autoscaler, the course over time, the changes."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.cli.simulation.workloads import Simulated
from argosy.simulation.outcome import SimulationOutcome
from argosy.simulation.traces import Floats

_ROWS, _CHANGES = 24, 12
_CELLS = 20


def tables(outcomes: Mapping[str, Sequence[SimulationOutcome]], models: Sequence[Simulated]) -> RenderableType:
    """Return a summary of all autoscalers, then the course of each model under the first one."""
    first = next(iter(outcomes.values()))
    return Group(_summary(outcomes, models), *(part for outcome in first for part in _course(outcome)))


def _summary(outcomes: Mapping[str, Sequence[SimulationOutcome]], models: Sequence[Simulated]) -> Table:
    table = Table("model", "scaled by", "requests", "late", "p50", "p99", "budget", "GPU-hours", "replicas", "changes")
    for index, model in enumerate(models):
        for scaler, of_models in outcomes.items():
            outcome = of_models[index]
            desired = outcome.timeline.desired
            if not len(desired):  # the trace ends before the first decision
                desired = np.array([model.workload.start.replicas])
            table.add_row(
                outcome.name,
                scaler,
                f"{outcome.requests:,}",
                f"{outcome.violations:.2%}",
                _seconds(outcome.percentile(50)),
                _seconds(outcome.percentile(99)),
                _seconds(model.workload.budget_s),
                f"{outcome.gpu_hours:.2f}",
                f"{desired.min():.0f} to {desired.max():.0f}",
                str(len(outcome.changes)),
            )
    return table


def _course(outcome: SimulationOutcome) -> Iterator[RenderableType]:
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


def _row(outcome: SimulationOutcome, part: "np.ndarray[tuple[int], np.dtype[np.int64]]", most: float) -> list[str]:
    """Return the cells of a part of the timeline: means, but the maximum of queue and latency."""
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
    measured = values[~np.isnan(values)]
    return float(measured.max()) if len(measured) else float("nan")


def _clock(seconds: float) -> str:
    rounded = round(seconds)
    return f"{rounded // 3600}:{rounded // 60 % 60:02}:{rounded % 60:02}"


def _seconds(value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
