"""The result as a picture, by matplotlib, which is an extra (`argosy[pictures]`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from argosy.simulation.outcome import SimulationOutcome

_INCHES = (9.0, 8.0)


def draw(path: Path, outcomes: Mapping[str, Sequence[SimulationOutcome]], budgets: Sequence[float]) -> None:
    """Draw a column of panels for each model: requests, replicas, queue and latency over the minutes of the trace."""
    # Imported here: it takes longer than everything else, and few runs draw a picture. It needs no display.
    from matplotlib.figure import Figure

    count = len(budgets)
    figure = Figure(figsize=(_INCHES[0] * count, _INCHES[1]), layout="constrained")
    panels = figure.subplots(4, count, sharex="col", squeeze=False)
    for column, budget in enumerate(budgets):
        requests, replicas, queue, latency = panels[:, column]
        for scaler, of_models in outcomes.items():
            timeline = of_models[column].timeline
            minutes = timeline.at / 60
            replicas.step(minutes, timeline.ready, where="post", label=scaler)
            queue.plot(minutes, timeline.queued, label=scaler)
            latency.plot(minutes, timeline.p99, label=scaler)
        first = next(iter(outcomes.values()))[column]
        requests.plot(first.timeline.at / 60, first.timeline.arrivals, color="grey")
        requests.set(title=first.name, ylabel="requests/s")
        replicas.set(ylabel="replicas ready")
        queue.set(ylabel="queued", yscale="symlog")
        latency.axhline(budget, color="red", linestyle=":", label="budget")
        latency.set(ylabel="p99, s", yscale="log", xlabel="minutes")
        latency.legend(loc="upper right", fontsize="small")
    figure.savefig(path)
