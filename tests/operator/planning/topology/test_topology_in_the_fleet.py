"""A known shape in a full round: the footprint of an unmeasured model, and the advice on its condition Valid."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.operator.planning.declared import GIB, gpu_node, model, pool
from tests.operator.planning.topology.shapes import shape

from argosy.api import ConditionType, InferenceModelStatus
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.facts import Footprint
from argosy.planning.topology.memory import Split, budget
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract.builds import ModelShape

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LLAMA = shape("llama-3-8b")
NEEDED = budget(LLAMA, Split(length=8192), 0).needed


def language_model(**spec: Any) -> Any:
    return model("m", **{"modelFormat": {"name": "huggingface"}, "footprint": {}, **spec})


@pytest.mark.parametrize(
    ("spec", "registered", "expected"),
    [
        ({}, LLAMA, Footprint(NEEDED, 0, 1, assumed=True)),
        ({}, None, Footprint(0, 0, 1, assumed=True)),
        ({}, ModelShape(2, 64, 4, 4, 16), Footprint(0, 0, 1, assumed=True)),
        ({"footprint": {"gpuMemory": "20Gi"}}, LLAMA, Footprint(20 * GIB)),
        ({"footprint": {"device": "CPU"}}, LLAMA, Footprint()),
        (
            {"parallelism": {"tensor": 2}, "footprint": {"gpus": 2}},
            LLAMA,
            Footprint(budget(LLAMA, Split(tensor=2, length=8192), 0).needed, 0, 2),
        ),
    ],
)
def test_what_no_one_measured_takes_what_its_shape_gives(
    spec: dict[str, Any], registered: ModelShape | None, expected: Footprint
) -> None:
    assert footprint_of(language_model(**spec), shape=registered) == expected


def round_of(spec: dict[str, Any], registered: ModelShape | None = LLAMA, **node: Any) -> RoundOutcome:
    served = language_model(**spec)
    shapes = {served.identity: registered} if registered else {}
    gpus = {"gpus": 8, "nvlink": (frozenset(range(8)),), **node}
    return reconcile(FleetSnapshot((pool(), served), (gpu_node("n", **gpus),), shapes=shapes), NOW)


def valid(outcome: RoundOutcome) -> tuple[str, str, str]:
    status = outcome.statuses["InferenceModel default/m"]
    assert isinstance(status, InferenceModelStatus)
    result = status.condition(ConditionType.VALID)
    assert result is not None
    return str(result.status), str(result.reason), result.message


def test_a_gpu_too_small_for_the_weights_is_not_tried() -> None:
    (unplaced,) = round_of({}, memory=16).plan.pools[0].unplaced
    assert unplaced.reason == "GpuTooSmall"
    assert not round_of({}, registered=None, memory=16).plan.pools[0].unplaced


def test_advice_stands_on_valid_which_stays_true() -> None:
    status, reason, message = valid(
        round_of({"parallelism": {"tensor": 8}, "traffic": {"promptTokens": 100, "outputTokens": 900}})
    )
    assert (status, reason) == ("True", "TopologyAdvice")
    assert message.startswith(
        "DecodeHeavy: decode-heavy traffic at parallelism.tensor 8: 900 of a request's 1000 tokens"
    )
    assert "; take tensor 1, and more replicas" in message


def test_what_suits_has_no_advice() -> None:
    assert valid(round_of({"traffic": {"promptTokens": 500, "outputTokens": 500}})) == ("True", "Valid", "")


def test_traffic_of_a_model_whose_shape_no_one_knows_has_no_effect() -> None:
    status, reason, message = valid(round_of({"traffic": {"promptTokens": 5, "outputTokens": 5}}, registered=None))
    assert (status, reason) == ("True", "SettingWithoutEffect")
    assert "spec.traffic: nothing tells the model's shape" in message


def test_advice_and_a_setting_without_effect_are_both_reported() -> None:
    spec = {"parallelism": {"tensor": 8}, "traffic": {"promptTokens": 1, "outputTokens": 9}}
    spec["rateLimiter"] = {"priority": 2}
    _, reason, message = valid(round_of(spec))
    assert reason == "TopologyAdvice"
    assert "DecodeHeavy" in message
    assert "without effect in this release: spec.rateLimiter" in message


def test_the_status_shows_what_the_shape_gives() -> None:
    status = round_of({}).statuses["InferenceModel default/m"]
    assert isinstance(status, InferenceModelStatus)
    assert status.footprint is not None
    assert (status.footprint.gpu_memory, status.footprint.gpus) == (NEEDED, 1)
