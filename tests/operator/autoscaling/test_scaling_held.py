"""Replicas that hold a load, as measured, though a model of the queue asks for more."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs
from tests.operator.autoscaling.loads import POLICY, Member, measured

from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Decision, Room
from argosy.autoscaling.learning.engines import EngineUse
from argosy.autoscaling.metrics.signals import Distribution
from argosy.autoscaling.policy import Policy, Targets

RATE = 500.0
LATE = Distribution(0.1, *[0.2] * 5)
SAID = "; but those that there are hold it, as measured."


def pessimist(steady_s: float = 1200) -> Member:
    """A member under a steady load, whose model thinks from now on that requests come all at once."""
    member = Member()
    member.under(RATE, steady_s)
    member.memory = structs.replace(member.memory, variation=4.0)
    return member


def decision(member: Member, policy: Policy | None = None, **changed: Any) -> Decision:
    """By what is measured now; no reading is new, so nothing is learnt of it."""
    signals = replace(measured(RATE, member.allocation, member.now), **changed)
    signals = replace(signals, at=member.memory.measured_at or signals.at)
    return decide(policy or member.policy, member.allocation, signals, Room(), member.memory, member.now)[0]


def test_what_is_held_as_measured_asks_for_no_more() -> None:
    member = pessimist()
    found = decision(member)
    assert found.desired == member.allocation.replicas == 4
    assert found.message.endswith(SAID)


def test_what_a_model_says_counts_while_a_load_is_new() -> None:
    member = pessimist(steady_s=500)
    assert decision(member).desired > member.allocation.replicas


def test_what_a_model_says_counts_for_another_load() -> None:
    member = pessimist()
    demand = member.memory.demand
    assert demand is not None
    member.memory = structs.replace(member.memory, demand=structs.replace(demand, level=1.2 * RATE))
    assert decision(member).desired > member.allocation.replicas


def test_what_a_model_says_counts_of_replicas_that_are_new() -> None:
    member = pessimist()
    before, after = member.allocation, structs.replace(member.allocation, replicas=3)
    scaled = member.memory.scaled
    assert scaled is not None
    member.memory = structs.replace(
        member.memory, scaled=structs.replace(scaled, at=member.now, before=before, after=after)
    )
    member.allocation = after
    assert decision(member).desired > 3


@pytest.mark.parametrize(
    "changed",
    [
        {"latency": Distribution()},
        {"unmeasured": 1},
        {"pending": 3000.0},
    ],
    ids=["not measured", "of some servers alone", "a queue"],
)
def test_what_a_model_says_counts_where_nobody_measured_that_it_is_held(changed: Mapping[str, Any]) -> None:
    member = pessimist()
    assert decision(member, **changed).desired > member.allocation.replicas


@pytest.mark.parametrize(("seconds", "more"), [(60, False), (180, True)])
def test_a_latency_over_its_target_is_not_held_once_that_lasts(seconds: float, more: bool) -> None:
    member = pessimist()
    member.memory = structs.replace(member.memory, over_since=member.now - timedelta(seconds=seconds))
    assert (decision(member, latency=LATE).desired > member.allocation.replicas) is more


@pytest.mark.parametrize(
    ("targets", "held"),
    [
        (Targets({"p99": 0.1}, queue_delay={"p99": 0.08}), True),
        (Targets({"p99": 0.1}, queue_delay={"p99": 0.005}), False),
        (Targets({"p99": 0.1}, queue_share=0.5), True),
        (Targets({"p99": 0.1}, queue_share=0.1), False),
        (Targets({"p99": 0.1}, busy_high=0.5), False),
        (Targets(), False),
    ],
    ids=["queue delay", "queue delay missed", "queue share", "queue share missed", "busy", "nothing to measure it by"],
)
def test_every_target_has_to_be_held(targets: Targets, held: bool) -> None:
    member = pessimist()
    policy = replace(POLICY, targets=targets)
    member.memory = structs.replace(member.memory, policy=policy)
    assert decision(member, policy).message.endswith(SAID) is held


@pytest.mark.parametrize(
    ("targets", "held"),
    [(Targets({"p99": 0.1}), True), (Targets({"p99": 0.1}, first_token={"p99": 0.1}), True), (Targets(), False)],
    ids=["latency", "the first token too", "nothing to measure it by"],
)
def test_an_engine_that_little_is_known_of_is_held_to_the_latency_of_requests(targets: Targets, held: bool) -> None:
    """As long as nobody knows its slots, what replicas hold follows from that, and so does whether it is held."""
    member = pessimist()
    policy = replace(POLICY, targets=targets)
    engine = EngineUse(2.0, 4.0, 100.0, 4.0, 0.5, slots=0.0, sampled=2.0, inside=8.0)
    member.memory = structs.replace(member.memory, policy=policy, engine=engine)
    assert decision(member, policy).message.endswith(SAID) is held
