"""The strategy of a rollout follows from what is free, and says why and what will happen before it happens."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.model.rollout.rollout import Strategy
from argosy.planning.rollouts.shares import actual_traffic, candidate_replicas, shares_in_words
from argosy.planning.rollouts.strategy import ReplicaCapacity, RolloutFacts, RolloutStrategy, choose_strategy

LACKS = "version 2 needs 50 GiB on GPU 0 of node a, where 30 GiB are free next to version 1"
FITS, SHORT = ReplicaCapacity(both=True), ReplicaCapacity(both=False, lacks=LACKS)
SILENT = replace(SHORT, reached=False)


def facts(
    *replicas: ReplicaCapacity, requested: Strategy = Strategy.AUTO, **more: int | tuple[int, ...]
) -> RolloutFacts:
    return RolloutFacts(requested, replicas, candidate="version 2", stable="version 1", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("replicas", "free", "queues", "expected"),
    [
        ((FITS,), False, False, RolloutStrategy.SURGE_INPLACE),
        ((FITS,), True, True, RolloutStrategy.SURGE_INPLACE),
        ((FITS, SHORT), True, False, RolloutStrategy.SURGE_FREE_GPUS),
        ((SHORT,), True, False, RolloutStrategy.SURGE_FREE_GPUS),
        ((SHORT, SHORT), False, False, RolloutStrategy.REPLICA_BY_REPLICA),
        ((SHORT, SILENT), False, False, None),
        ((SHORT,), False, True, RolloutStrategy.RECREATE),
        ((SHORT,), False, False, None),
        ((replace(SHORT, alone=False),), False, True, None),
        ((replace(SHORT, alone=False), SHORT), False, True, None),
    ],
)
def test_auto_takes_what_costs_least(
    replicas: Sequence[ReplicaCapacity], free: bool, queues: bool, expected: RolloutStrategy | None
) -> None:
    assert choose_strategy(facts(*replicas, free_gpus=free, queues=queues)).strategy is expected


def test_recreate_is_obeyed_though_there_is_memory_for_both_and_reports_the_gap() -> None:
    chosen = choose_strategy(facts(FITS, requested=Strategy.RECREATE))
    assert chosen.strategy is RolloutStrategy.RECREATE
    assert chosen.message == (
        "rollout.strategy is Recreate: version 1 is unloaded before version 2 is loaded; from then until version 2 is "
        "loaded no replica serves, and requests fail"
    )


def test_requests_that_an_activator_queues_in_the_gap_are_reported() -> None:
    assert (
        "the activator queues requests"
        in choose_strategy(facts(FITS, requested=Strategy.RECREATE, queues=True)).message
    )


def test_one_replica_without_memory_for_both_gets_all_traffic_at_the_first_step_and_reports_it() -> None:
    chosen = choose_strategy(facts(SHORT, queues=True, steps=(50, 500)))
    assert chosen.strategy is RolloutStrategy.RECREATE
    assert "every request is then for version 2, at the first step too" in chosen.message


def test_what_is_declared_to_surge_waits_for_memory_and_names_the_way_out() -> None:
    chosen = choose_strategy(facts(SHORT, SHORT, requested=Strategy.SURGE, free_gpus=True, queues=True))
    assert chosen.strategy is None
    assert chosen.message == (
        f"rollout.strategy is Surge, and {LACKS}: version 1 goes on serving, and version 2 waits. Free GPU memory; or "
        "set rollout.strategy to Auto or Recreate"
    )


def test_steps_by_replicas_are_reported_beforehand() -> None:
    chosen = choose_strategy(facts(SHORT, SHORT, SHORT, steps=(50, 500)))
    assert chosen.strategy is RolloutStrategy.REPLICA_BY_REPLICA
    assert chosen.message.endswith(
        "while the others serve; requests are split as replicas are, so steps of 5%, 50% have 33.3%, 33.3% "
        "(1, 1 of 3 replicas)"
    )


def test_a_replica_on_free_gpus_counts_among_those_that_share_the_traffic() -> None:
    chosen = choose_strategy(facts(SHORT, free_gpus=True, steps=(250,)))
    assert chosen.further_replicas == 1
    assert "a step of 25% has 50% (1 of 2 replicas)" in chosen.message


def test_servers_that_have_both_revisions_split_requests_themselves() -> None:
    chosen = choose_strategy(facts(FITS, steps=(50,)))
    assert chosen.further_replicas == 0
    assert chosen.strategy is not None
    assert chosen.strategy.serves_both


def test_requests_that_are_not_mirrored_are_reported_beforehand() -> None:
    unmirrored = "; requests are not mirrored, which takes both on one server"
    alone = choose_strategy(facts(SHORT, SHORT, mirrored=100))
    assert alone.message.endswith(
        f"{unmirrored}; requests are split as replicas are, so a step of 10% has 50% (1 of 2 replicas)"
    )
    stepped = choose_strategy(facts(SHORT, SHORT, mirrored=100, steps=(250,)))
    assert stepped.message.endswith(
        f"{unmirrored}; requests are split as replicas are, so a step of 25% has 50% (1 of 2 replicas)"
    )
    of_ensembles = choose_strategy(facts(SHORT, SHORT, mirrored=100, by_replicas=False))
    assert of_ensembles.message.endswith(f"{unmirrored}; version 2 is analyzed once it has all requests")
    recreated = choose_strategy(facts(SHORT, requested=Strategy.RECREATE, mirrored=100))
    assert recreated.message.endswith(unmirrored)
    assert "mirrored" not in choose_strategy(facts(FITS, mirrored=100)).message


def test_without_steps_no_share_is_reported() -> None:
    assert shares_in_words((), 3) == ""
    assert "split" not in choose_strategy(facts(SHORT, SHORT)).message


@given(st.integers(1, 1000), st.integers(1, 100))
def test_the_nearest_number_of_replicas_has_the_candidate(traffic: int, replicas: int) -> None:
    count = candidate_replicas(traffic, replicas)
    assert 1 <= count <= replicas
    assert (count == replicas) == (traffic == 1000 or replicas == 1)
    others = range(1, replicas) if traffic < 1000 and replicas > 1 else [count]
    assert all(abs(count * 1000 - traffic * replicas) <= abs(other * 1000 - traffic * replicas) for other in others)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100))
def test_a_later_step_never_has_fewer_replicas(one: int, other: int, replicas: int) -> None:
    first, second = sorted((one, other))
    assert candidate_replicas(first, replicas) <= candidate_replicas(second, replicas)
    assert actual_traffic(first, replicas) <= actual_traffic(second, replicas) <= 1000


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=4), st.data())
def test_nothing_that_serves_alone_is_unloaded_unless_that_is_declared_or_requests_are_queued(
    drawn: list[tuple[bool, bool, bool]], data: st.DataObject
) -> None:
    replicas = [ReplicaCapacity(both, alone or both, reached, LACKS) for both, alone, reached in drawn]
    requested = data.draw(st.sampled_from(Strategy))
    free, queues = data.draw(st.booleans()), data.draw(st.booleans())
    chosen = choose_strategy(RolloutFacts(requested, replicas, free, queues))
    assert chosen.message
    if chosen.strategy is RolloutStrategy.RECREATE:
        assert requested is Strategy.RECREATE or queues
    if chosen.strategy is RolloutStrategy.REPLICA_BY_REPLICA:
        assert sum(capacity.reached for capacity in replicas) > 1
    if chosen.strategy is RolloutStrategy.SURGE_INPLACE:
        assert all(capacity.both for capacity in replicas)
