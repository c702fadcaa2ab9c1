"""Reports on their way: not too many, the last one always, and a place that hangs holds up nothing."""

import threading

from argosy_agent.contract.builddocuments import parse_report
from argosy_agent.contract.builds import BuildReport, BuildState
from argosy_agent.publisher import PublishError
from argosy_builder import reporter
from argosy_builder.reporter import LINE, Course, Reporter

READY = BuildReport(BuildState.READY, percent=100)


def at(percent: int) -> BuildReport:
    return BuildReport(BuildState.BUILDING, percent=percent)


def test_the_newest_is_written_and_the_last_one_in_any_case() -> None:
    texts: list[str] = []
    first = threading.Event()

    def write(text: str) -> None:
        texts.append(text)
        first.set()

    reports = Reporter(write, every_s=60.0)
    reports.offer(at(1))
    assert first.wait(60)
    for percent in range(2, 50):
        reports.offer(at(percent))

    assert reports.close(READY, 0.0)
    assert [parse_report(text).percent for text in texts] == [1, 100]


def test_a_last_one_that_cannot_be_written_is_tried_for_a_while(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(reporter, "PAUSE_S", 0.0)
    tries: list[str] = []

    def write(text: str) -> None:
        tries.append(text)
        if len(tries) < 3:
            raise PublishError("the API server does not answer")

    assert Reporter(write).close(READY, 10.0)
    assert len(tries) == 3


def test_and_then_abandoned() -> None:
    def write(text: str) -> None:
        raise PublishError("forbidden")

    assert not Reporter(write).close(READY, 0.0)


def test_lines_of_tools_are_cut_and_printable() -> None:
    reports: list[BuildReport] = []
    progress = Course(reports.append, at(0)).during("compile", 10, 20)

    progress(50, "\x1b[32mlayer\t1" + "x" * 1000)
    progress(-1, "")

    assert reports[-1].line.startswith(" [32mlayer 1xx".strip())
    assert len(reports[-1].line) <= LINE
    assert reports[-1].percent == 15


def test_percents_never_go_back() -> None:
    reports: list[BuildReport] = []
    course = Course(reports.append, at(40))

    course.during("a", 30, 60)(50, "")
    course.during("b", 35, 50)(20, "")

    assert [report.percent for report in reports] == sorted(report.percent for report in reports)
