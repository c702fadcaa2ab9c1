"""Statuses: what code builds is what the CRD takes, and a condition is found by its type."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from argosy.api import (
    Condition,
    ConditionStatus,
    ConditionType,
    EnsembleStatus,
    InferenceModelStatus,
    Reason,
    ServingPoolStatus,
    scalingstatus,
    statusparts,
)
from argosy.api import status as parts
from argosy.api.crd.schema import structural_schema

READY = Condition(
    type=ConditionType.READY,
    status=ConditionStatus.TRUE,
    reason=Reason.SERVING,
    message="2 of 2 replicas serve",
    last_transition_time="2026-01-01T00:00:00Z",
    observed_generation=4,
)
VERSION = parts.VersionStatus(version=2, state=parts.VersionState.SERVING, traffic_percent=100, replicas=2)
PLACEMENT = parts.PlacementStatus(server="gpus-0", node="a", version=2, gpus=(0, 1))
SCALING = scalingstatus.ScalingStatus(
    replicas=1, desired=2, reason="Steady", metric="queue delay", observed=3.5, target=10.0
)
NECK = scalingstatus.BottleneckStatus(
    stage="queue", kind="StarvedStage", share=725, evidence="requests wait 30 ms", advice="raise maxReplicas"
)
STATUSES: list[parts.ResourceStatus] = [
    InferenceModelStatus(
        observed_generation=4,
        conditions=(READY,),
        replicas=2,
        available_replicas=2,
        selector="argosy.dev/model=m",
        url="http://m.n",
        versions=(VERSION,),
        active_version=2,
        placement=(PLACEMENT,),
        remaining_placements=9900,
        footprint=parts.FootprintStatus(gpu_memory=3 * 2**30, compute=125),
        engines=(
            statusparts.EngineStatus(
                version=2,
                architecture="9.0",
                state="Ready",
                serving=True,
                key="k",
                build_seconds=12.5,
                accuracy=statusparts.AccuracyStatus(metric="cosine_similarity", value=0.999, passed=True, minimum=0.99),
            ),
        ),
        scaling=SCALING,
        bottleneck=NECK,
    ),
    EnsembleStatus(
        versions=(VERSION,),
        steps=(parts.StepStatus(model="m", version=2, state=parts.VersionState.SERVING),),
        placement=(PLACEMENT,),
        scaling=SCALING,
        bottleneck=NECK,
    ),
    ServingPoolStatus(
        conditions=(READY,),
        servers=(parts.ServerStatus(name="gpus-0", node="a", gpus=(0,), ready=True, models=1),),
        remaining_servers=750,
        gpus=parts.GpuCount(
            total=6,
            used=3,
            free=1,
            withheld=2,
            withheld_by=(parts.GpuHolder(holder="Pod a/b", gpus=2),),
            one_per_model=6,
        ),
        unplaced=(parts.UnplacedStatus(name="big", reason="NoRoom", message="needs 80Gi"),),
        remaining_unplaced=3,
    ),
]


@pytest.mark.parametrize("status", STATUSES, ids=lambda status: type(status).__name__)
def test_what_is_written_passes_the_schema_and_reads_back(status: parts.ResourceStatus) -> None:
    written: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    schema = structural_schema(type(status), defaults=False)
    assert list(Draft202012Validator(schema).iter_errors(written)) == []
    assert set(written) <= set(schema["properties"])
    assert type(status).model_validate(written) == status


def test_amounts_are_written_as_kubernetes_does() -> None:
    written = STATUSES[0].model_dump(mode="json", by_alias=True)
    assert written["footprint"]["gpuMemory"] == "3Gi"
    assert written["footprint"]["compute"] == "12.5%"
    assert written["bottleneck"]["share"] == "72.5%"


def test_ready_is_the_conditions_word() -> None:
    false = READY.model_copy(update={"status": ConditionStatus.FALSE})
    assert STATUSES[0].ready
    assert not STATUSES[1].ready
    assert not ServingPoolStatus(conditions=(false,)).ready
    assert STATUSES[0].condition(ConditionType.READY) == READY
    assert STATUSES[0].condition(ConditionType.SCALING) is None


def test_a_status_of_a_newer_release_is_read() -> None:
    status = InferenceModelStatus.model_validate({"newer": 1, "scaling": {"newer": 2, "desired": 3}})
    assert status.scaling is not None
    assert status.scaling.desired == 3


def test_a_condition_of_a_newer_release_is_read_and_may_be_written() -> None:
    reported = {"type": "Quantized", "status": "True", "reason": "NotInvented1Yet", "message": "m"}
    fields = {**reported, "type": "Ready", "reason": "Serving"}
    written = {"conditions": [reported, fields], "versions": [{"version": 1, "state": "Mirrored"}]}
    status = InferenceModelStatus.model_validate(written)
    assert [(condition.type, condition.reason) for condition in status.conditions] == [
        ("Quantized", "NotInvented1Yet"),
        (ConditionType.READY, Reason.SERVING),
    ]
    assert status.ready
    assert isinstance(status.conditions[1].reason, Reason)
    schema = Draft202012Validator(structural_schema(InferenceModelStatus, defaults=False))
    assert list(schema.iter_errors(written)) == []
    for wrong in ("not Camel", "lower", ""):
        assert list(schema.iter_errors({"conditions": [{**reported, "reason": wrong}]}))


def test_every_type_and_reason_of_ours_passes_the_schema() -> None:
    schema = Draft202012Validator(structural_schema(Condition, defaults=False))
    for kind, reason in [*((kind, "Valid") for kind in ConditionType), *(("Ready", reason) for reason in Reason)]:
        assert list(schema.iter_errors({"type": str(kind), "status": "True", "reason": str(reason)})) == []
