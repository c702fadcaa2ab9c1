"""What a load that has been the same for long still changes: little."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs
from tests.operator.autoscaling.loads import POLICY, START, Member, measured

from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, Room
from argosy.autoscaling.learning.memory import Steady


@pytest.mark.parametrize(
    ("steady_s", "rate", "wanted"),
    [(100, 640.0, 5), (400, 640.0, 4), (400, 700.0, 5), (2400, 700.0, 4), (86400, 740.0, 5)],
)
def test_the_longer_a_load_was_steady_the_less_it_asks_for_a_replica_by_a_little(
    steady_s: float, rate: float, wanted: int
) -> None:
    """Four replicas hold 628/s here; chance is no part of it, since readings are even."""
    member = Member()
    member.under(500, 400)
    memory, since = member.memory, member.now - timedelta(seconds=steady_s)
    assert memory.demand is not None
    memory = structs.replace(memory, demand=structs.replace(memory.demand, level=rate), steady=Steady(since, rate))
    signals = measured(rate, member.allocation, member.now)
    decision, _ = decide(POLICY, member.allocation, signals, Room(), memory, member.now)
    assert (member.allocation.replicas, decision.desired) == (4, wanted)


def test_a_queue_asks_for_replicas_however_long_the_load_has_been_the_same() -> None:
    member = Member()
    member.under(600, 2400)
    held = member.allocation.replicas
    member.under(600, 10, pending=3000.0)
    assert member.allocation.replicas > held


@pytest.mark.parametrize(("steady_s", "left"), [(300, 1), (2400, 2)], ids=["new", "the same for long"])
def test_an_instance_too_many_is_taken_away_while_a_load_is_new(steady_s: float, left: int) -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_instances=4)))
    member.under(20, steady_s)
    assert member.allocation == Allocation(1)
    member.allocation = Allocation(1, 2)
    member.under(20, 120)
    assert member.allocation == Allocation(1, left)


def test_instances_are_taken_away_once_a_load_is_another() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_instances=4)))
    member.under(190, 2400)
    assert member.allocation.instances == 2
    member.under(60, 300)
    assert member.allocation.instances == 1


@pytest.mark.parametrize(("steady_s", "fewer"), [(200, True), (2400, False)], ids=["new", "the same for long"])
def test_one_less_of_a_dozen_is_worth_a_change_while_a_load_is_new(steady_s: float, fewer: bool) -> None:
    member = Member()
    enough = member.under(1500, steady_s).allocation.replicas
    member.allocation = Allocation(enough + 1)
    decision = member.under(1500, 150)
    assert (member.allocation.replicas == enough) is fewer
    assert decision.message.endswith("so that 25% fewer are not worth a change.") is not fewer


def test_what_is_more_than_a_few_too_many_goes_however_long_the_load_has_been_the_same() -> None:
    member = Member()
    enough = member.under(1500, 2400).allocation.replicas
    member.allocation = Allocation(enough + 4)
    member.under(1500, 150)
    assert member.allocation.replicas == enough


def test_another_policy_is_obeyed_however_long_the_load_has_been_the_same() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, min_replicas=12)))
    member.under(1500, 2400)
    member.policy = POLICY
    member.under(1500, 150)
    assert member.allocation.replicas == 11


def test_a_load_is_the_same_within_a_tenth_and_what_is_chance() -> None:
    steady = Steady(START, 100.0)
    assert steady.is_about(112.0, 1.0)
    assert steady.is_about(88.0, 1.0)
    assert not steady.is_about(114.0, 1.0)


def test_the_level_of_a_steady_load_is_its_mean() -> None:
    last, now = START + timedelta(seconds=295), START + timedelta(seconds=300)
    assert Steady(START, 100.0).after(106.0, 0.0, last, now) == Steady(START, pytest.approx(100.1))
    first = START + timedelta(seconds=5)
    assert Steady(START, 100.0).after(106.0, 0.0, START, first) == Steady(START, pytest.approx(100.5))


@pytest.mark.parametrize(("readings", "anew"), [(6, False), (7, True)])
def test_a_load_is_another_once_that_lasts(readings: int, anew: bool) -> None:
    """A reading every five seconds, the first of them the one that may be chance."""
    steady, now = Steady(START, 100.0), START + timedelta(seconds=600)
    for _ in range(readings):
        steady = steady.after(140.0, 1.0, now, now + timedelta(seconds=5))
        now += timedelta(seconds=5)
    assert steady == (Steady(now, 140.0) if anew else Steady(START, 100.0, START + timedelta(seconds=605)))
    assert steady.after(100.0, 1.0, now, now).another_since == (now if anew else None)


def test_a_load_that_climbs_slowly_is_not_the_same_for_long() -> None:
    member = Member()
    member.under(500, 1200)
    for step in range(240):
        member.step(measured(500 * (1 + step / 240), member.allocation, member.now))
    assert member.memory.steady_s(member.now) < 600
    assert member.allocation.replicas >= 1000 / 157


@pytest.mark.parametrize(("rate", "readings"), [(720.0, 4), (1500.0, 1)], ids=["some more", "much more"])
def test_some_more_than_a_load_has_been_for_long_has_to_last(rate: float, readings: int) -> None:
    """Four replicas hold 628/s here."""
    member = Member()
    held = member.under(500, 1200).allocation.replicas
    for _ in range(readings - 1):
        decision = member.under(rate, 5)
        assert (decision.allocation.replicas, held < decision.desired) == (held, True)
        assert decision.message.endswith("; so little more may be chance, which the next readings tell.")
    assert member.under(rate, 5).allocation.replicas > held
