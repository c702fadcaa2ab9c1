"""What a server exposes of a shadow is what the operator reads of it."""

from argosy.autoscaling.metrics.shadow_counts import ShadowExample, ShadowOutput, ShadowSignals
from argosy.autoscaling.metrics.versions import VersionMarks, version_signals
from argosy.autoscaling.metrics.windows import ServerWindow
from argosy.signals.exposition import samples
from argosy.signals.samples import Sample, exposed
from argosy_runtime.comparison.differences import Difference, DifferenceKind, OutputComparison
from argosy_runtime.errors import FailureReason
from argosy_runtime.telemetry.argosy_families import argosy_families
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.shadow.statistics import Obstacle, ShadowStatistics
from argosy_runtime.telemetry.statistics import ModelStatistics

SERVES = {"s": {"m": "model"}}
IN_SERVICE = InService(0, 1, False, 8, 0)


class Server:
    """A server whose text is read, as a scraper does."""

    def __init__(self) -> None:
        self.statistics = ModelStatistics()
        self._window, self._marks, self._at = ServerWindow(), VersionMarks(), 0.0

    def read(self) -> ShadowSignals | None:
        """Return what was counted since the reading before."""
        series = ModelSeries({"model": "m", "version": "2"}, self.statistics, service=IN_SERVICE)
        text = exposition(argosy_families([series], 0)).decode()
        self._at += 1
        answered = Sample("nv_inference_request_success", {"model": "m", "version": "2"}, 0)
        self._window = self._window.after(exposed([answered, *samples(text)], self._at))
        sums, self._marks = version_signals(SERVES, {"s": self._window}, {"model": 0.0}, self._marks)
        return sums["model"][2].shadow


def _value(size: float) -> OutputComparison:
    return OutputComparison("Y", Difference(DifferenceKind.VALUE, size), size)


def test_what_a_server_counts_is_read_from_the_first_copy_on() -> None:
    server = Server()
    assert server.read() is None
    shadow = server.statistics.shadow = ShadowStatistics(["Y", "Z"])
    shadow.compared([OutputComparison("Y", largest=0.0), OutputComparison("Z", rows=4, agreeing=3)], "a")
    shadow.compared([_value(0.5)], 'id with "quotes", commas} and {braces')
    shadow.failed(FailureReason.BACKEND)
    shadow.failed(None)
    shadow.skipped(Obstacle.BUSY)
    shadow.uncompared(Obstacle.SAMPLED)
    shadow.canceled()
    shadow.stable.add(20_000_000)
    shadow.candidate.add(40_000_000)
    shadow.calls = 2
    signals = server.read()
    assert signals is not None
    assert (signals.compared, signals.different, signals.answered, signals.failed) == (2, 1, 3, 2)
    assert {outcome for outcome, count in signals.outcomes.items() if count} == set(signals.outcomes)
    assert {reason for reason, count in signals.failures.items() if count} == {"BACKEND", "ERROR"}
    assert {reason for reason, count in signals.obstacles.items() if count} == {"BUSY", "SAMPLED"}
    worst = ShadowExample('id with "quotes", commas} and {braces', "Value", 0.5)
    assert signals.outputs == {"Y": ShadowOutput(1, 0, 0, 0.5, (worst,)), "Z": ShadowOutput(0, 4, 3, None, ())}
    assert signals.calls == 2
    assert (signals.stable.count, signals.candidate.histogram.total_s) == (1, 0.04)  # type: ignore[union-attr]


def test_increases_are_reported_once_and_examples_stay() -> None:
    server = Server()
    shadow = server.statistics.shadow = ShadowStatistics(["Y"])
    server.read()
    shadow.compared([_value(2.0)], "b")
    first = server.read()
    shadow.compared([_value(1.0)], "c")
    second = server.read()
    third = server.read()
    assert first is not None
    assert second is not None
    assert (first.different, second.different, third.different if third is not None else 0) == (1, 1, 0)
    total = first + second
    assert total.different == 2
    assert [example.request_id for example in total.outputs["Y"].examples] == ["b", "c"]


def test_examples_of_several_servers_are_the_worst_of_all() -> None:
    one, other = (
        ShadowOutput(3, examples=tuple(ShadowExample(f"{name}{size}", "Value", size) for size in (5.0, 3.0, 1.0)))
        for name in ("a", "b")
    )
    assert [example.request_id for example in (one + other).examples] == [
        "a5.0",
        "b5.0",
        "a3.0",
        "b3.0",
        "a1.0",
    ]


def test_what_is_infinitely_far_apart_is_the_worst() -> None:
    server = Server()
    shadow = server.statistics.shadow = ShadowStatistics(["Y"])
    shadow.compared([OutputComparison("Y", Difference(DifferenceKind.SHAPE))], "shape")
    shadow.compared([_value(float("inf"))], "nan")
    server.read()
    shadow.compared([_value(1.0)], "value")
    signals = server.read()
    assert signals is not None
    assert signals.outputs["Y"].largest == 1e30
    assert [example.kind for example in signals.outputs["Y"].examples] == ["Value", "Shape", "Value"]
