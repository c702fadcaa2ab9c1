"""Draws traffic and evidence over time."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes

BIN_S = 0.5
COLORS = {1: "#4c78a8", 2: "#72b7b2", 3: "#f2a14a", 0: "#d62728"}
"""By version; 0 are failed requests, of whichever version."""
PHASES = {"Loading": "#eeeeee", "Stepping": "#fff3cd", "Promoting": "#d4edda", "RollingBack": "#f8d7da"}
SHOWN = "errorRate"


def draw(answers: list[tuple[float, int]], statuses: list[tuple[float, dict]], path: Path) -> None:
    """Draw the answers by version above, and the candidate's failures with their limits below."""
    matplotlib.rcParams["svg.hashsalt"] = "argosy"  # equal pictures are equal files
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(10, 6), sharex=True, height_ratios=[3, 2])
    _traffic(above, answers, statuses)
    _evidence(below, statuses)
    for phase, begin, end in _phases(statuses):
        if phase in PHASES:
            below.axvspan(begin, end, color=PHASES[phase], zorder=0, lw=0)
    below.set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _traffic(axes: Axes, answers: list[tuple[float, int]], statuses: list[tuple[float, dict]]) -> None:
    """Draw the share of each version in the answers, and the share that the candidate is to get."""
    bins = Counter((int(at / BIN_S), version) for at, version in answers)
    times = sorted({slot for slot, _ in bins})
    totals = {slot: sum(bins[slot, version] for version in COLORS) for slot in times}
    versions = sorted({version for _, version in bins}, reverse=True)
    shares = [[100 * bins[slot, version] / totals[slot] for slot in times] for version in versions]
    names = [f"version {version}" if version else "failed" for version in versions]
    middle = [(slot + 0.5) * BIN_S for slot in times]
    axes.stackplot(middle, shares, labels=names, colors=[COLORS[version] for version in versions], alpha=0.85)
    desired = [float((status.get("desiredTraffic") or "0%").rstrip("%")) for _, status in statuses]
    axes.step([at for at, _ in statuses], desired, where="post", color="black", lw=1, label="candidate's weight")
    axes.set_ylabel("answers, %")
    axes.set_ylim(0, 100)
    axes.set_title("Version 2 is promoted step by step; version 3 fails, and is taken back")
    axes.legend(loc="center left", fontsize="small")


def _evidence(axes: Axes, statuses: list[tuple[float, dict]]) -> None:
    """Draw the share of each candidate's requests that fail, the two rates that are told apart, and the verdicts."""
    points = list(_points(statuses))
    for _, rollout in groupby(points, lambda point: point[1]):
        steps = list(rollout)
        axes.plot([at for at, *_ in steps], [100 * one["value"] for *_, one in steps], ".-", color="#d62728", ms=3)
        for index, (at, _, one) in enumerate(steps):
            decided = one.get("outcome") in ("Successful", "Failed")
            if decided and (index == 0 or steps[index - 1][2].get("outcome") != one["outcome"]):
                text = f"{one['outcome']}: {one['samples']} requests"
                axes.annotate(text, (at, 100 * one["value"]), (2, 6), textcoords="offset points", fontsize="x-small")
    for rate in re.findall(r"([\d.]+)%", points[-1][2]["limit"]) if points else ():
        axes.axhline(float(rate), color="gray", ls="--", lw=0.8)
    axes.set_ylabel("candidate's failures, %")
    axes.set_ylim(bottom=-1)


def _points(statuses: list[tuple[float, dict]]) -> Iterator[tuple[float, int, dict]]:
    """Yield the measured errors while there is a candidate: the time, the number of the rollout, the measurement."""
    for at, status in statuses:
        for one in (status.get("analysis") or {}).get("measurements", ()):
            if status.get("candidate") and one["name"] == SHOWN and one.get("value") is not None:
                yield at, status["number"], one


def _phases(statuses: list[tuple[float, dict]]) -> Iterator[tuple[str, float, float]]:
    """Yield each phase with its beginning and end."""
    for phase, entries in groupby(statuses, lambda entry: entry[1].get("phase")):
        times = [at for at, _ in entries]
        yield phase or "", times[0], times[-1] + 0.2
