"""The message of a decision: one sentence that ends once, and only the fields that decide, by their real names."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.autoscaling.loads import POLICY, START, Member, measured
from tests.operator.planning import declared

from argosy.api import Ensemble, InferenceModel
from argosy.api.crd.schema import structural_schema
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.policy import Bounds, Pace, Policy, Targets
from argosy.autoscaling.pool.memory import PoolMemory
from argosy.autoscaling.pool.policies import policies, policy_of
from argosy.autoscaling.pool.pool_round import PoolInputs, decide_pool

FULL = SpareCapacity(replicas=0, missing="m needs 1 GPU; none is free. Add 1 GPU.")
OFFICE = {"name": "office", "minReplicas": 3, "maxReplicas": 4}


def member(allocation: Allocation, bounds: dict[str, Any] | None = None, pace: Pace = POLICY.pace) -> Member:
    bounded = replace(POLICY.bounds, **(bounds or {}))
    return Member(replace(POLICY, bounds=bounded, pace=pace), allocation)


def busy(**spec: Any) -> str:
    """Return what limits a model of this spec under a load that is always too high."""
    declaration = declared.model("m", maxBatchSize=8, **spec)
    assert isinstance(declaration, InferenceModel)
    policy = policy_of(declaration, START)
    scaled = Member(policy, Allocation(policy.bounds.min_replicas))
    return scaled.under(50_000, 60).limited_by


def test_a_sentence_ends_once_whatever_is_missing_ends_with() -> None:
    scaled = member(Allocation())
    scaled.spare = FULL
    message = scaled.under(900, 5).message
    assert message.endswith("none is free. Add 1 GPU.")


def test_what_is_missing_in_addition_stands_before_its_end() -> None:
    query = {"name": "jobs", "query": "jobs", "target": 10}
    declaration = declared.model("m", maxReplicas=4, minReplicas=0, scaling={"targets": {"queries": [query]}})
    assert isinstance(declaration, InferenceModel)
    policy, one = policies([declared.pool(), declaration], START), {declaration.identity: Allocation()}
    inputs = PoolInputs((declaration,), policy, one, activator_error="no Pod is ready.")
    signals = PoolSignals({"m": measured(1, Allocation(), START)}, query_errors={("m", "jobs"): "it is empty."})
    (report,) = decide_pool(inputs, signals, PoolMemory(), START).reports.values()
    assert report.decision.message.endswith("cannot be used: it is empty; it does not go to zero: no Pod is ready.")
    assert "minReplicas" not in report.decision.message
    assert report.decision.limited_by == ""


def test_the_minimum_is_named_where_it_decides() -> None:
    scaled = member(Allocation(3), {"min_replicas": 3})
    decision = scaled.under(10, 120)
    assert decision.message.endswith("; minReplicas is 3.")
    assert decision.limited_by == "spec.minReplicas"


def test_the_minimum_is_not_named_where_the_load_needs_as_many() -> None:
    decision = member(Allocation()).under(50, 120)
    assert decision.allocation.replicas == 1
    assert "minReplicas" not in decision.message
    assert decision.limited_by == ""


def test_one_replica_that_may_go_to_zero_says_what_it_waits_for() -> None:
    scaled = member(Allocation(), {"min_replicas": 0})
    scaled.under(50, 60)
    decision = scaled.under(0, 150, running=0.0, pending=0.0)
    assert decision.message.endswith("; to zero once no request came for 900 s.")
    assert decision.limited_by == "spec.scaling.idleTimeout"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"maxReplicas": 2}, "spec.maxReplicas"),
        ({"replicas": 2, "scaling": {}}, "spec.replicas"),
        ({"maxReplicas": 9, "scaling": {"schedules": [OFFICE]}}, "spec.scaling.schedules[0].maxReplicas"),
        ({"maxReplicas": 9, "scaling": {"scaleUp": {"maxStep": 1, "cooldown": "1h"}}}, "spec.scaling.scaleUp.cooldown"),
        ({"maxReplicas": 5, "slo": {"latency": {"p99": "5ms"}}}, "spec.maxReplicas"),
    ],
)
def test_what_limits_going_up_is_named_as_the_manifest_names_it(spec: dict[str, Any], field: str) -> None:
    assert busy(**spec) == field


def limits() -> Iterator[str]:
    """Yield all that keeps replicas from what is desired, in loads that come, stay and go."""
    slow = replace(POLICY.pace, cooldown_up_s=30, cooldown_down_s=60, step_up=1, step_down=1)
    for pace in (slow, replace(slow, step_up=None, step_down=None, cooldown_down_s=0)):
        for bounds in ({}, {"max_replicas": 2}, {"min_replicas": 0}, {"min_replicas": 2}):
            scaled = member(Allocation(2), bounds, pace)
            for rate in (50, 900, 900, 5):
                scaled.under(rate, 120)
            scaled.under(0, 120, running=0.0, pending=0.0)
            yield from (decision.limited_by for decision in scaled.decisions)
    impossible = Member(Policy(Bounds(max_replicas=3, max_batch=8), Targets({"p99": 0.005})))
    yield impossible.under(20, 60).limited_by


def test_every_field_that_limits_is_one_of_the_api() -> None:
    fields = {field for field in limits() if field.startswith("spec.")}
    fields |= {busy(maxReplicas=9, scaling={"schedules": [OFFICE]}), busy(replicas=2, scaling={})}
    assert len(fields) >= 10
    for kind in (InferenceModel, Ensemble):
        schema = structural_schema(kind)
        assert [path for path in fields if not _there(schema, path)] == []


def _there(schema: dict[str, Any], path: str) -> bool:
    for part in re.findall(r"[^.\[\]]+", path):
        schema = schema["items"] if part.isdecimal() else schema.get("properties", {}).get(part, {})
    return bool(schema)


def test_a_field_that_the_api_does_not_have_is_detected() -> None:
    assert not _there(structural_schema(InferenceModel), "spec.scaling.cooldown")


def test_a_schedule_with_a_higher_minimum_is_named() -> None:
    declaration = declared.model("m", maxReplicas=9, scaling={"schedules": [OFFICE | {"start": "12:00"}]})
    assert isinstance(declaration, InferenceModel)
    at_night = policy_of(declaration, START - timedelta(hours=2))
    by_day = policy_of(declaration, START)
    assert (at_night.bounds.min_by, by_day.bounds.min_by) == (
        "spec.minReplicas",
        "spec.scaling.schedules[0].minReplicas",
    )
    decision = Member(by_day, Allocation(3)).under(1, 400)
    assert decision.message.endswith("; scaling.schedules[0].minReplicas is 3.")


@pytest.mark.parametrize(
    ("busy", "low", "margin"),
    [({}, 0.7, 85 / 70), ({"max": "60%"}, 0.6 * 70 / 85, 85 / 70), ({"max": "60%", "min": "50%"}, 0.5, 1.2)],
)
def test_the_lower_busy_share_follows_the_upper_one(busy: dict[str, str], low: float, margin: float) -> None:
    declaration = declared.model("m", scaling={"targets": {"busy": busy}})
    assert isinstance(declaration, InferenceModel)
    targets = policy_of(declaration, START).targets
    assert (targets.busy_low, targets.margin) == (pytest.approx(low), pytest.approx(margin))
