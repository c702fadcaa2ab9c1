"""A constant load changes nothing once decisions have settled."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from tests.operator.autoscaling.loads import EVERY_S, POLICY, Member, measured

from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.metrics.signals import Signals


@pytest.mark.parametrize("rate", [30.0, 145.0, 160.0, 480.0, 640.0, 790.0, 1000.0])
def test_a_constant_load_changes_nothing_after_it_settled(rate: float) -> None:
    """Arrivals are Poisson; whatever share of a replica the load takes, the dead band holds it."""
    member, random = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_instances=3))), np.random.default_rng(1)
    for _ in range(720):
        recent = float(random.poisson(rate * EVERY_S)) / EVERY_S
        member.step(replace(measured(rate, member.allocation, member.now), recent=recent, recent_s=EVERY_S))
    settled = [decision.allocation for decision in member.decisions[180:]]
    assert len(set(settled)) == 1


def one_by_one(rate: float, member: Member) -> Signals:
    """Return signals of servers without batches, of 10 ms a request."""
    signals = measured(rate, member.allocation, member.now)
    busy = min(1.0, rate * 0.01 / member.allocation.replicas)
    return replace(signals, execution=0.01, batch=1.0, max_batch=0, busy=busy, completions=rate, pending=0.0)


@pytest.mark.parametrize("replicas", [4, 5])
def test_replicas_between_the_two_rules_neither_come_nor_go(replicas: int) -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_batch=0)), Allocation(replicas))
    member.step(one_by_one(100.0, member))
    assert member.memory.own.holds is not None
    for _ in range(120):
        member.step(one_by_one(3.8 * member.memory.own.holds, member))
    assert member.allocation.replicas == replicas


def test_an_instance_too_many_is_taken_away_after_a_window() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_instances=4)))
    member.under(20, 120)
    member.allocation = Allocation(1, 2)
    member.under(20, 120)
    assert member.allocation == Allocation(1, 1)


def test_an_instance_on_trial_stays_while_the_load_asks_for_more() -> None:
    """At a maximum of replicas the trial would begin again as soon as it ended."""
    bounds = replace(POLICY.bounds, max_replicas=2, max_instances=3)
    member = Member(replace(POLICY, bounds=bounds, targets=replace(POLICY.targets, queue_delay={"p99": 0.001})))
    member.under(30, 1800)
    settled = [decision.allocation for decision in member.decisions[180:]]
    assert len(set(settled)) == 1


def test_another_policy_is_obeyed_at_once() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, min_replicas=14)))
    member.under(1500, 600)
    member.policy = POLICY
    member.under(1500, 150)
    assert member.allocation.replicas < 14


def test_a_load_that_climbs_slowly_is_followed() -> None:
    member = Member()
    member.under(500, 600)
    for step in range(240):
        member.step(measured(500 * (1 + step / 240), member.allocation, member.now))
    assert member.allocation.replicas >= 1000 / 157
    assert member.now - member.memory.own.measured.at <= timedelta(seconds=EVERY_S)
