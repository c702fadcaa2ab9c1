"""Events of engines' builds: one for each change. Pure."""

from typing import Any

from argosy.api.status import InferenceModelStatus, ServingPoolStatus
from argosy.api.statusparts import EngineStatus
from argosy.controller.events.announcements import build_events


def status(**engine: Any) -> InferenceModelStatus:
    full = {"version": 2, "architecture": "9.0", "build": "b1", **engine}
    return InferenceModelStatus(engines=(EngineStatus(**full),))


PENDING = status(state="Pending")
BUILDING = status(state="Building", percent=10)
READY = status(state="Ready", storage_uri="s3://engines/1", build_seconds=61.5)


def reasons(before: InferenceModelStatus | None, now: InferenceModelStatus) -> list[tuple[str, str]]:
    return [(event.type, event.reason) for event in build_events(before, now)]


def test_a_build_that_begins_is_reported_once() -> None:
    assert reasons(None, PENDING) == []
    assert reasons(PENDING, BUILDING) == [("Normal", "BuildStarted")]
    assert reasons(BUILDING, status(state="Building", percent=50)) == []
    assert reasons(BUILDING, status(state="Verifying")) == []
    assert reasons(status(state="Verifying"), BUILDING) == []


def test_how_it_ends_is_reported() -> None:
    (reported,) = build_events(status(state="Verifying"), READY)
    assert (reported.type, reported.reason) == ("Normal", "BuildSucceeded")
    assert reported.message == "The engine of version 2 for 9.0 is there after 62 s: s3://engines/1"
    assert reasons(READY, READY) == []
    (cached,) = build_events(None, status(state="Ready", cached=True, storage_uri="s3://engines/1"))
    assert "was there already" in cached.message


def test_a_failure_says_why_and_what_to_do() -> None:
    (reported,) = build_events(BUILDING, status(state="Failed", message="OutOfMemory: it took 3 GiB. Raise memory."))
    assert (reported.type, reported.reason) == ("Warning", "BuildFailed")
    assert "OutOfMemory: it took 3 GiB. Raise memory." in reported.message
    low = status(state="Failed", message="AccuracyTooLow: 0.9 is below 0.99.")
    assert reasons(BUILDING, low) == [("Warning", "AccuracyTooLow")]


def test_another_build_of_the_same_engine_is_another() -> None:
    assert reasons(READY, status(state="Building", build="b2")) == [("Normal", "BuildStarted")]


def test_what_has_no_engines_has_nothing_to_report() -> None:
    assert list(build_events(None, ServingPoolStatus())) == []
    assert reasons(READY, InferenceModelStatus()) == []
