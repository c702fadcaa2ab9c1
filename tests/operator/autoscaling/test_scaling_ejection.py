"""Servers whose own queue is too long are sent nothing while others have room: never all of them, and not for long."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.loads import POLICY, Member, measured

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Decision, Ejection
from argosy.autoscaling.metrics.signals import ServerQueue, Signals
from argosy.autoscaling.policy import Targets
from argosy.autoscaling.pool.reported import reported

RATE = 300.0


def served(replicas: int = 3, targets: Targets = POLICY.targets) -> Member:
    """So many replicas. Two hold the load: each works off two hundred requests a second, as was seen."""
    bounds = replace(POLICY.bounds, min_replicas=replicas, max_replicas=replicas)
    member = Member(replace(POLICY, bounds=bounds, targets=targets), Allocation(replicas))
    member.under(230 * replicas, 60)
    member.under(RATE, 60)
    return member


def queued(member: Member, *waiting: float) -> Signals:
    queues = tuple(ServerQueue(f"p-{number}", each) for number, each in enumerate(waiting))
    return replace(measured(RATE, member.allocation, member.now), queues=queues)


def step(member: Member, *waiting: float) -> Decision:
    return member.step(queued(member, *waiting))


def test_a_queue_that_alone_makes_requests_late_gets_no_more_of_them() -> None:
    decision = step(served(), 80, 1, 2)
    assert decision.ejection == Ejection(("p-0",), 2)
    assert decision.message.endswith("; p-0 is sent nothing until what waits there is worked off.")


def test_a_queue_within_what_requests_may_wait_is_none_of_it() -> None:
    assert step(served(), 8, 1, 2).ejection == NO_EJECTION


def test_it_is_sent_requests_again_once_most_of_the_queue_is_worked_off() -> None:
    member = served()
    assert [step(member, waiting, 0, 0).ejection.servers for waiting in (80, 8, 1)] == [("p-0",), ("p-0",), ()]


def test_the_longest_queues_come_first_and_as_many_servers_are_left_as_are_needed() -> None:
    decision = step(served(), 60, 80, 70)
    assert decision.ejection == Ejection(("p-1", "p-2", "p-0"), 2)
    assert decision.ejection.among(["p-0", "p-1", "p-2"]) == ("p-1",)
    assert decision.ejection.among(["p-0", "p-1", "p-2", "p-3"]) == ("p-1", "p-2"), "a new one makes room"
    assert "p-1 is sent nothing" in decision.message


def test_several_are_told_together() -> None:
    assert "p-0 and 1 other are sent nothing" in step(served(5), 60, 80, 0, 0, 0).message


def test_without_a_latency_to_hold_nobody_is_left_out() -> None:
    assert step(served(targets=Targets()), 80, 0, 0).ejection == NO_EJECTION


def test_what_is_not_known_any_more_leaves_nobody_out() -> None:
    member = served()
    assert step(member, 80, 0, 0).ejection.servers
    assert member.step(None).ejection == NO_EJECTION


def test_it_is_worth_a_reconcile() -> None:
    member = served()
    calm, hot = step(member, 0, 0, 0), step(member, 80, 0, 0)
    before = reported(None, calm, member.now)
    assert reported(before, hot, member.now).decision == hot


def test_a_queue_that_gets_no_more_asks_for_no_replicas() -> None:
    def asked(*waiting: float) -> int:
        """The replicas, once who is left out is known."""
        member = served()
        step(member, *waiting)
        return member.step(replace(queued(member, *waiting), pending=sum(waiting))).desired

    assert asked(4000, 0, 0) == asked(0, 0, 0), "one server is left out, and works it off alone"
    assert asked(2000, 2000, 0) > asked(0, 0, 0), "two are needed, so the second queue makes late what comes"


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sets(st.sampled_from("abcdef")), st.integers(1, 7))
def test_never_all_and_never_fewer_than_are_to_be_kept(servers: list[str], reachable: set[str], keep: int) -> None:
    away = Ejection(tuple(servers), keep).among(reachable)
    assert set(away) <= set(servers) & reachable
    assert not away or len(reachable) - len(away) >= keep


@pytest.mark.parametrize("waiting", [(), (80.0,)], ids=["unknown", "only one server"])
def test_who_is_alone_is_never_left_out(waiting: tuple[float, ...]) -> None:
    decision = step(served(1), *waiting)
    assert decision.ejection.among(["p-0"]) == ()
