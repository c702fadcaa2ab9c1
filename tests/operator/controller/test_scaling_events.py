"""Events of scaling: each change once with its sentence, and what keeps it from happening."""

import pytest

from argosy.api.status import InferenceModelStatus, ScalingChange, ScalingStatus
from argosy.controller.events.announcements import scaling_events


def change(time: str, before: tuple[int, int], after: tuple[int, int]) -> ScalingChange:
    return ScalingChange(
        time=time, former_replicas=before[0], former_instances=before[1], replicas=after[0], instances=after[1],
        reason="Steady", message=f"{before} becomes {after}",
    )  # fmt: skip


def told(reason: str, *history: ScalingChange, metric: str = "busy") -> InferenceModelStatus:
    return InferenceModelStatus(scaling=ScalingStatus(reason=reason, metric=metric, message=reason, history=history))


FIRST, SECOND = change("2026-01-01T12:00:00Z", (1, 1), (2, 1)), change("2026-01-01T12:05:00Z", (2, 1), (1, 1))


@pytest.mark.parametrize(
    ("before", "now", "events"),
    [
        (told("Steady"), told("ScaledUp", FIRST), [("Normal", "ScaledUp")]),
        (told("Steady", FIRST), told("ScaledDown", SECOND, FIRST), [("Normal", "ScaledDown")]),
        (told("ScaledUp", FIRST), told("Steady", FIRST), []),
        (told("Steady"), told("LimitedByCapacity"), [("Warning", "LimitedByCapacity")]),
        (told("LimitedByCapacity"), told("LimitedByCapacity"), []),
        (told("Steady"), told("NoSignals"), [("Warning", "NoSignals")]),
        (told("", metric=""), told("NoSignals", metric=""), []),  # it is new
        (InferenceModelStatus(), told("ScaledUp", FIRST), []),  # another process told of it
    ],
)
def test_changes_and_troubles_are_reported_once(
    before: InferenceModelStatus, now: InferenceModelStatus, events: list[tuple[str, str]]
) -> None:
    assert [(event.type, event.reason) for event in scaling_events(before, now)] == events
