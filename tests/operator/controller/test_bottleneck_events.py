"""Events of bottlenecks: when one begins, changes or ends. Pure."""

from argosy.api.scalingstatus import BottleneckStatus
from argosy.api.status import EnsembleStatus, ServingPoolStatus
from argosy.controller.events.announcements import bottleneck_events


def status(kind: str = "", stage: str = "embedder", evidence: str = "requests wait 80 %") -> EnsembleStatus:
    bottleneck_status = BottleneckStatus(
        stage=stage, kind=kind or "-", evidence=evidence, advice="more instances", since="2026-11-22T12:00:00Z"
    )
    return EnsembleStatus(bottleneck=bottleneck_status if kind else None)


def events(before: EnsembleStatus | None, now: EnsembleStatus) -> list[tuple[str, str]]:
    return [(event.type, event.reason) for event in bottleneck_events(before, now)]


def test_what_begins_and_what_changes_is_reported_with_evidence_and_advice() -> None:
    (first,) = bottleneck_events(None, status("StarvedStage"))
    assert (first.type, first.reason, first.subject) == ("Warning", "StarvedStage", "embedder")
    assert first.message == "embedder: requests wait 80 %. More instances"
    assert events(status("StarvedStage"), status("SaturatedGpu")) == [("Warning", "SaturatedGpu")]
    assert events(status("StarvedStage"), status("StarvedStage", stage="safety")) == [("Warning", "StarvedStage")]


def test_other_numbers_are_no_news() -> None:
    assert events(status("StarvedStage"), status("StarvedStage", evidence="requests wait 90 %")) == []
    assert events(status(), status()) == []
    assert list(bottleneck_events(None, ServingPoolStatus())) == []


def test_that_it_is_over_is_reported_with_its_beginning() -> None:
    (over,) = bottleneck_events(status("StarvedStage"), status())
    assert (over.type, over.reason) == ("Normal", "BottleneckEnded")
    assert over.message == "StarvedStage of embedder, which was so since 2026-11-22T12:00:00Z, is over"


def test_what_only_costs_money_is_no_warning() -> None:
    assert events(None, status("IdleGpu")) == [("Normal", "IdleGpu")]
