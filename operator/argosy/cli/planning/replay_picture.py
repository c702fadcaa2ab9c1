"""The evidence on candidates over time against its limits as a picture, by matplotlib (`argosy[pictures]`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argosy.replay.readings import CandidateReplay, Turn
from argosy.rollout.verdict import Measurement, Outcome

_INCHES = (10.0, 2.2)
_COLOURS = {Outcome.SUCCESSFUL: "green", Outcome.FAILED: "red", Outcome.ERROR: "orange", Outcome.INCONCLUSIVE: "grey"}
_NOT_A_NUMBER = float("nan")
_EDGE = 2.0


def draw(path: Path, replays: Sequence[CandidateReplay]) -> None:
    """Draw a row of two panels for each measurement: how far its test is between the two limits, and the values of both
    revisions. A line marks each reading at which its outcome changed.
    """
    # Imported here: it takes longer than everything else, and few runs draw a picture. It needs no display.
    from matplotlib.figure import Figure

    rows = [(replay, name) for replay in replays for name in replay.names if _has_values(replay.of(name))]
    figure = Figure(figsize=(_INCHES[0], _INCHES[1] * max(len(rows), 1)), layout="constrained")
    panels = figure.subplots(max(len(rows), 1), 2, squeeze=False)
    for (replay, name), (progress, values) in zip(rows, panels, strict=False):
        begin = replay.judgements[0].reading.at
        seconds = [(judgement.reading.at - begin).total_seconds() for judgement in replay.judgements]
        measured = replay.of(name)
        _draw_progress(progress, seconds, measured)
        _draw_values(values, seconds, measured)
        progress.set_title(f"{replay.member.rpartition(' ')[2]}: {name}", fontsize="medium", loc="left")
        turns = [turn for turn in replay.turns if turn.name == name]
        for panel in (progress, values):
            _draw_turns(panel, turns, replay)
            panel.set_xlim(0, max(seconds[-1], 1.0))
            panel.set_xlabel("seconds", fontsize="small")
    figure.savefig(path)


def _has_values(measured: Sequence[Measurement | None]) -> bool:
    return any(one is not None and one.value is not None for one in measured)


def _draw_progress(panel: Any, seconds: Sequence[float], measured: Sequence[Measurement | None]) -> None:
    points = [_shown(one.progress) if one is not None else _NOT_A_NUMBER for one in measured]
    panel.plot(seconds, points, color="black")
    panel.axhline(1, color="red", linestyle=":", label="fails")
    panel.axhline(-1, color="green", linestyle=":", label="passes")
    panel.set_ylim(-_EDGE - 0.1, _EDGE + 0.1)
    panel.set_ylabel("evidence")
    panel.legend(loc="upper left", fontsize="x-small")


def _shown(progress: float | None) -> float:
    """Return how far a test is, at the edge of the panel where it is far beyond its limits."""
    return _NOT_A_NUMBER if progress is None else max(-_EDGE, min(_EDGE, progress))


def _draw_values(panel: Any, seconds: Sequence[float], measured: Sequence[Measurement | None]) -> None:
    for label, colour in (("candidate", "black"), ("stable", "tab:blue")):
        values = [getattr(one, "value" if label == "candidate" else label, None) for one in measured]
        if any(value is not None for value in values):
            points = [_NOT_A_NUMBER if value is None else value for value in values]
            panel.plot(seconds, points, color=colour, label=label)
            panel.legend(loc="upper left", fontsize="x-small")
    limit = next((one.limit for one in reversed(measured) if one is not None), "")
    panel.set_title(limit, fontsize="small", loc="left")


def _draw_turns(panel: Any, turns: Sequence[Turn], replay: CandidateReplay) -> None:
    begin = replay.judgements[0].reading.at
    for turn in turns:
        if turn.after is not None:
            panel.axvline((turn.at - begin).total_seconds(), color=_COLOURS[turn.after], linewidth=0.8)
