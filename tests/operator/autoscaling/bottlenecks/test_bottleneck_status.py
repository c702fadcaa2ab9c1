"""What a status tells, and what a new operator knows from it."""

from tests.operator.autoscaling.bottlenecks.inputs import at
from tests.operator.autoscaling.bottlenecks.test_diagnose import kind, starved, well
from tests.operator.planning.declared import gpu_node, model, pool

from argosy.api.status import BottleneckStatus, InferenceModelStatus
from argosy.autoscaling.bottlenecks.bottleneck import Bottleneck, BottleneckKind
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport, Memory, diagnose
from argosy.reconcile import reconcile
from argosy.snapshot import FleetSnapshot
from argosy.status.findings.bottleneck import bottleneck_status, restored

FOUND = Bottleneck("bert", BottleneckKind.STARVED_STAGE, "requests wait", "more instances", share=725)
TOLD = BottleneckReport(FOUND, since=at(0), measured_at=at(60))


def test_the_status_has_what_is_told() -> None:
    declared, waiting = model("bert"), model("other")
    snapshot = FleetSnapshot((pool(), declared, waiting), (gpu_node("n"),), bottlenecks={declared.identity: TOLD})
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


def test_another_operator_goes_on_from_the_status() -> None:
    memory = restored(bottleneck_status(TOLD), at(70))
    assert memory.report == TOLD
    assert kind(diagnose(starved(71), memory, at(71))) is BottleneckKind.STARVED_STAGE
    assert kind(diagnose(well(71), memory, at(71))) is BottleneckKind.STARVED_STAGE
    assert diagnose(well(101), memory, at(101)).report is None


def test_what_another_release_wrote_is_forgotten() -> None:
    written = bottleneck_status(TOLD)
    assert written is not None
    for change in ({"kind": "Unheard"}, {"since": "yesterday"}, {"since": None}, {"since": "2026-11-22T12:00:00"}):
        assert restored(written.model_copy(update=change), at(70)) == Memory()
    assert restored(None, at(70)) == Memory()
