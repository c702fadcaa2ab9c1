"""A report does not come and go with every measurement."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.bottlenecks.inputs import FULL, IDLE, at, gpu, measured, model

from argosy.autoscaling.bottlenecks.diagnose import BottleneckState, diagnose
from argosy.autoscaling.bottlenecks.rules import BottleneckKind
from argosy.autoscaling.bottlenecks.subjects import Subject

K = BottleneckKind


def starved(seconds: float, wait: float = 0.08) -> Subject:
    """Return a model whose requests wait for an instance, as measured then."""
    return model(measured(wait=wait, when=at(seconds), busy=0.98), gpus=(gpu(IDLE),))


def well(seconds: float) -> Subject:
    """Return the same model without a wait."""
    return starved(seconds, wait=0.0)


def kind(memory: BottleneckState) -> BottleneckKind | None:
    return memory.report.bottleneck.kind if memory.report else None


def test_it_is_reported_after_ten_seconds_until_thirty_after_its_end() -> None:
    memory = diagnose(starved(0), BottleneckState(), at(0))
    assert memory.report is None
    memory = diagnose(starved(9), memory, at(9))
    assert memory.report is None
    memory = diagnose(starved(10), memory, at(10))
    assert kind(memory) is K.STARVED_STAGE
    assert memory.report is not None
    assert memory.report.since == at(0)
    memory = diagnose(well(20), memory, at(20))
    memory = diagnose(well(39), memory, at(39))
    assert kind(memory) is K.STARVED_STAGE
    assert diagnose(well(40), memory, at(40)).report is None


def test_what_comes_and_goes_is_reported_throughout_or_never() -> None:
    memory, seen = BottleneckState(), set()
    for second in range(0, 300, 5):
        memory = diagnose(starved(second) if second % 10 else well(second), memory, at(second))
        seen.add(kind(memory))
    assert seen == {None}
    memory = diagnose(starved(311), diagnose(starved(300), memory, at(300)), at(311))
    report = {kind(memory)}
    for second in range(312, 600, 5):
        memory = diagnose(starved(second) if second % 10 == 2 else well(second), memory, at(second))
        report.add(kind(memory))
    assert report == {K.STARVED_STAGE}


def test_a_tenth_less_is_enough_for_what_is_reported() -> None:
    memory = diagnose(starved(10), diagnose(starved(0), BottleneckState(), at(0)), at(10))
    almost = 0.018  # 47 % of the time, where 50 % is the threshold
    for second in range(20, 200, 10):
        memory = diagnose(starved(second, almost), memory, at(second))
    assert kind(memory) is K.STARVED_STAGE
    fresh = diagnose(starved(20, almost), diagnose(starved(0, almost), BottleneckState(), at(0)), at(20))
    assert fresh.report is None


def test_its_numbers_are_updated_every_five_minutes() -> None:
    memory = diagnose(starved(10), diagnose(starved(0), BottleneckState(), at(0)), at(10))
    first = memory.report
    memory = diagnose(starved(100, wait=0.2), memory, at(100))
    assert memory.report == first
    memory = diagnose(starved(310, wait=0.2), memory, at(310))
    assert memory.report is not None
    assert first is not None
    assert "91 %" in memory.report.bottleneck.evidence
    assert memory.report.since == first.since


def test_something_graver_replaces_it_once_it_stays() -> None:
    memory = diagnose(starved(10), diagnose(starved(0), BottleneckState(), at(0)), at(10))

    def failing(seconds: float) -> Subject:
        return model(measured(wait=0.08, when=at(seconds), busy=0.98, out_of_memory=1.0), gpus=(gpu(IDLE),))

    memory = diagnose(failing(20), memory, at(20))
    assert kind(memory) is K.STARVED_STAGE
    assert kind(diagnose(failing(30), memory, at(30))) is K.OUT_OF_MEMORY


def test_something_less_grave_does_not() -> None:
    memory = diagnose(starved(10), diagnose(starved(0), BottleneckState(), at(0)), at(10))
    for second in range(20, 100, 5):
        both = starved(second)
        both = replace(both, stages=(replace(both.stages[0], signals=replace(both.signals, cache_hits=0.1)),))
        memory = diagnose(both, memory, at(second))
    assert kind(memory) is K.STARVED_STAGE


def test_without_fresh_measurements_nothing_changes() -> None:
    memory = diagnose(starved(10), diagnose(starved(0), BottleneckState(), at(0)), at(10))
    assert diagnose(None, memory, at(500)) == memory
    assert diagnose(well(10), memory, at(500)) == memory
    assert diagnose(starved(0), BottleneckState(), at(500)).report is None


@given(st.lists(st.sampled_from(["starved", "full", "well"]), max_size=60))
def test_the_report_never_changes_twice_within_ten_seconds(course: list[str]) -> None:
    memory, changes, before = BottleneckState(), [], None
    for second, state in enumerate(course):
        subject = starved(second) if state == "starved" else well(second)
        if state == "full":
            subject = model(measured(when=at(second)), gpus=(gpu(FULL),))
        memory = diagnose(subject, memory, at(second))
        if kind(memory) is not before:
            changes.append((second, kind(memory)))
            before = kind(memory)
    report = [second for second, reported in changes if reported is not None]
    assert all(later - earlier >= 10 for earlier, later in pairwise(report))
