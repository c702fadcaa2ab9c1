"""Events of scaling: one for each change with its message, and one for what prevents it."""

import pytest

from argosy.api.scalingstatus import ScalingChange, ScalingStatus
from argosy.api.status import InferenceModelStatus
from argosy.controller.events.announcements import scaling_events


def change(time: str, before: tuple[int, int], after: tuple[int, int]) -> ScalingChange:
    return ScalingChange(
        time=time, former_replicas=before[0], former_instances=before[1], replicas=after[0], instances=after[1],
        reason="Steady", message=f"{before} becomes {after}",
    )  # fmt: skip


def status(reason: str, *history: ScalingChange, metric: str = "busy") -> InferenceModelStatus:
    return InferenceModelStatus(scaling=ScalingStatus(reason=reason, metric=metric, message=reason, history=history))


FIRST, SECOND = change("2026-01-01T12:00:00Z", (1, 1), (2, 1)), change("2026-01-01T12:05:00Z", (2, 1), (1, 1))


@pytest.mark.parametrize(
    ("before", "now", "events"),
    [
        (status("Steady"), status("ScaledUp", FIRST), [("Normal", "ScaledUp")]),
        (status("Steady", FIRST), status("ScaledDown", SECOND, FIRST), [("Normal", "ScaledDown")]),
        (status("ScaledUp", FIRST), status("Steady", FIRST), []),
        (status("Steady"), status("LimitedByCapacity"), [("Warning", "LimitedByCapacity")]),
        (status("LimitedByCapacity"), status("LimitedByCapacity"), []),
        (status("Steady"), status("NoSignals"), [("Warning", "NoSignals")]),
        (status("", metric=""), status("NoSignals", metric=""), []),  # it is new
        (InferenceModelStatus(), status("ScaledUp", FIRST), []),  # another process reported it
    ],
)
def test_changes_and_limits_are_reported_once(
    before: InferenceModelStatus, now: InferenceModelStatus, events: list[tuple[str, str]]
) -> None:
    assert [(event.type, event.reason) for event in scaling_events(before, now)] == events
