"""Servers with too long a queue get no requests while others have capacity: never all of them, and not for long."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.loads import POLICY, Member, measured

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Decision, Ejection
from argosy.autoscaling.metrics.signals import ServerQueue, Signals
from argosy.autoscaling.policy import Targets
from argosy.autoscaling.pool.memory import report

RATE = 300.0


def served(replicas: int = 3, targets: Targets = POLICY.targets) -> Member:
    """Return a member of so many replicas. Two suffice for the load: one works off two hundred requests a second."""
    bounds = replace(POLICY.bounds, min_replicas=replicas, max_replicas=replicas)
    member = Member(replace(POLICY, bounds=bounds, targets=targets), Allocation(replicas))
    member.under(230 * replicas, 60)
    member.under(RATE, 60)
    return member


def queued(member: Member, *waiting: float) -> Signals:
    queues = tuple(ServerQueue(f"p-{number}", seconds) for number, seconds in enumerate(waiting))
    return replace(measured(RATE, member.allocation, member.now), queues=queues)


def step(member: Member, *waiting: float) -> Decision:
    return member.step(queued(member, *waiting))


def test_a_server_with_too_long_a_queue_gets_no_more_requests() -> None:
    decision = step(served(), 80, 1, 2)
    assert decision.ejection == Ejection(("p-0",), 2)
    assert decision.message.endswith("; p-0 is sent nothing until what waits there is worked off.")


def test_a_queue_within_the_target_ejects_no_server() -> None:
    assert step(served(), 8, 1, 2).ejection == NO_EJECTION


def test_it_gets_requests_again_once_most_of_its_queue_is_worked_off() -> None:
    member = served()
    assert [step(member, waiting, 0, 0).ejection.servers for waiting in (80, 8, 1)] == [("p-0",), ("p-0",), ()]


def test_the_longest_queues_come_first_and_enough_servers_stay() -> None:
    decision = step(served(), 60, 80, 70)
    assert decision.ejection == Ejection(("p-1", "p-2", "p-0"), 2)
    assert decision.ejection.among(["p-0", "p-1", "p-2"]) == ("p-1",)
    assert decision.ejection.among(["p-0", "p-1", "p-2", "p-3"]) == ("p-1", "p-2"), "a new one adds capacity"
    assert "p-1 is sent nothing" in decision.message


def test_several_are_reported_together() -> None:
    assert "p-0 and 1 other are sent nothing" in step(served(5), 60, 80, 0, 0, 0).message


def test_without_a_latency_target_no_server_is_ejected() -> None:
    assert step(served(targets=Targets()), 80, 0, 0).ejection == NO_EJECTION


def test_without_signals_no_server_is_ejected() -> None:
    member = served()
    assert step(member, 80, 0, 0).ejection.servers
    assert member.step(None).ejection == NO_EJECTION


def test_it_is_worth_a_reconcile() -> None:
    member = served()
    calm, hot = step(member, 0, 0, 0), step(member, 80, 0, 0)
    before = report(None, calm, member.now)
    assert report(before, hot, member.now).decision == hot


def test_a_queue_that_gets_no_more_asks_for_no_replicas() -> None:
    def desired(*waiting: float) -> int:
        """Return the desired replicas once the ejection is known."""
        member = served()
        step(member, *waiting)
        return member.step(replace(queued(member, *waiting), pending=sum(waiting))).desired

    assert desired(4000, 0, 0) == desired(0, 0, 0), "one server is ejected, and works it off alone"
    assert desired(2000, 2000, 0) > desired(0, 0, 0), "two are needed, so the second queue makes late what comes"


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sets(st.sampled_from("abcdef")), st.integers(1, 7))
def test_at_least_the_servers_to_be_retained_stay(servers: list[str], reachable: set[str], keep: int) -> None:
    away = Ejection(tuple(servers), keep).among(reachable)
    assert set(away) <= set(servers) & reachable
    assert not away or len(reachable) - len(away) >= keep


@pytest.mark.parametrize("waiting", [(), (80.0,)], ids=["unknown", "only one server"])
def test_a_single_server_is_never_ejected(waiting: tuple[float, ...]) -> None:
    decision = step(served(1), *waiting)
    assert decision.ejection.among(["p-0"]) == ()
