"""The curve of a profile as a picture: rows a second and latency by the size of batches, a line for each number of
instances.
"""

from pathlib import Path
from typing import IO

from argosy.bench.profile.points import Sweep
from argosy.bench.profile.proposal import Proposal, knee

_INCHES = (11.0, 4.5)


def draw(target: Path | IO[bytes], measured: Sweep, proposal: Proposal | None) -> None:
    """Draw the curve to a file by its suffix, or to a stream as SVG."""
    # Imported here: it takes longer than everything else, and few runs draw a picture. It needs no display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    rows, seconds = figure.subplots(1, 2)
    for count in measured.instances:
        curve, name = measured.curve(count), f"{count} instance{'s' if count > 1 else ''}"
        sizes = [point.batch for point in curve]
        rows.plot(sizes, [point.throughput for point in curve], marker="o", label=name)
        seconds.plot(sizes, [point.p95 * 1000 for point in curve], marker="o", label=name)
        bend = knee(curve)
        if bend is not None:
            rows.annotate("knee", (bend.batch, bend.throughput), textcoords="offset points", xytext=(4, -12))
    if proposal is not None:
        point = proposal.point
        rows.plot([point.batch], [point.throughput], marker="*", markersize=16, color="red", linestyle="")
        seconds.plot([point.batch], [point.p95 * 1000], marker="*", markersize=16, color="red", linestyle="")
    sizes = sorted({point.batch for point in measured.points})
    for axes, label in ((rows, "rows/s"), (seconds, "latency p95, ms")):
        axes.set(xscale="log", xlabel="rows of a batch", ylabel=label, ylim=(0, None))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    rows.legend(loc="best", fontsize="small")
    figure.savefig(target, format="svg" if not isinstance(target, Path) else None)
