"""The bottleneck in a status, and what a new operator process restores from it."""

from tests.operator.autoscaling.bottlenecks.inputs import at
from tests.operator.autoscaling.bottlenecks.test_diagnose import kind, starved, well
from tests.operator.planning.declared import gpu_node, model, pool

from argosy.api.scalingstatus import BottleneckStatus
from argosy.api.status import InferenceModelStatus
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport, BottleneckState, diagnose
from argosy.autoscaling.bottlenecks.rules import Bottleneck, BottleneckKind
from argosy.reconcile import reconcile
from argosy.snapshot import FleetSnapshot
from argosy.status.findings.bottleneck import bottleneck_status, restored

BOTTLENECK = Bottleneck("bert", BottleneckKind.STARVED_STAGE, "requests wait", "more instances", share=725)
REPORT = BottleneckReport(BOTTLENECK, since=at(0), measured_at=at(60))


def test_the_status_has_the_report() -> None:
    declared, waiting = model("bert"), model("other")
    snapshot = FleetSnapshot((pool(), declared, waiting), (gpu_node("n"),), bottlenecks={declared.identity: REPORT})
    statuses = reconcile(snapshot, at(100)).statuses
    status = statuses[declared.identity]
    assert isinstance(status, InferenceModelStatus)
    assert status.bottleneck == BottleneckStatus(
        stage="bert",
        kind="StarvedStage",
        evidence="requests wait",
        advice="more instances",
        share=725,
        since="2026-11-22T12:00:00Z",
        measured="2026-11-22T12:01:00Z",
    )
    other = statuses[waiting.identity]
    assert isinstance(other, InferenceModelStatus)
    assert other.bottleneck is None


def test_another_operator_continues_from_the_status() -> None:
    memory = restored(bottleneck_status(REPORT), at(70))
    assert memory.report == REPORT
    assert kind(diagnose(starved(71), memory, at(71))) is BottleneckKind.STARVED_STAGE
    assert kind(diagnose(well(71), memory, at(71))) is BottleneckKind.STARVED_STAGE
    assert diagnose(well(101), memory, at(101)).report is None


def test_an_unknown_status_of_another_release_is_dropped() -> None:
    written = bottleneck_status(REPORT)
    assert written is not None
    for change in ({"kind": "Unheard"}, {"since": "yesterday"}, {"since": None}, {"since": "2026-11-22T12:00:00"}):
        assert restored(written.model_copy(update=change), at(70)) == BottleneckState()
    assert restored(None, at(70)) == BottleneckState()
