"""Few replicas in a part of a pool: as few GPUs as in all of it, and the nodes that a part has."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import linked_node, lone
from tests.operator.planning.random_rounds import Rounds

from argosy.planning.facts import Footprint, Group, Node
from argosy.planning.packing.layout import Replica
from argosy.planning.packing.nearby import fill, part
from argosy.planning.packing.nearby.part import part_of
from argosy.planning.packing.nearby.spare import Seat, SpareNode, spare_nodes
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.plan import FleetPlan
from argosy.planning.spreading import HOSTNAME, ZONE, Spread

GIB = 1 << 30


@pytest.mark.parametrize("seed", [200, 201, 203, 204, 205])
def test_a_part_takes_no_more_gpus_than_all_of_the_pool_and_leaves_nothing_out(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "_JOINED", 1)
    monkeypatch.setattr(part, "_OPENED", 1)
    rounds = Rounds(seed, 0.2)
    for _ in range(6):
        monkeypatch.setattr(fill, "_LEAST", 1)
        plan = pack_fleet(rounds.facts)
        monkeypatch.setattr(fill, "_LEAST", 1000)
        in_full = pack_fleet(rounds.facts)
        assert _unplaced(plan) <= _unplaced(in_full)
        assert _unplaced(plan) < _unplaced(in_full) or plan.gpus_used <= in_full.gpus_used
        rounds.step(plan)


def _unplaced(plan: FleetPlan) -> int:
    return sum(len(pool.unplaced) for pool in plan.pools)


def spare(*used: int, zone: str = "x") -> list[SpareNode]:
    """Return the spare capacity of nodes with two GPUs of 80 GiB, of the first of which so many GiB are used."""
    nodes = [replace(linked_node(f"n{at:02}", 2), labels={ZONE: zone}) for at in range(len(used))]
    seats = [Seat(f"n{at:02}", (0,), gib * GIB, 0, exclusive=False) for at, gib in enumerate(used) if gib]
    return spare_nodes(nodes, 0, seats)


def todo(*groups: Group) -> list[Replica]:
    return [Replica(group, at) for group in groups for at in range(group.replicas)]


def test_what_fits_on_an_open_gpu_goes_to_the_fullest_and_opens_none() -> None:
    result = part_of(todo(lone("m", Footprint(20 * GIB))), spare(*range(0, 80, 2)), {})
    assert result.fewest == 0
    assert {"n30", "n29", "n28"} <= result.nodes
    assert "n31" not in result.nodes
    assert len(result.nodes) < 20


def test_what_fits_on_no_open_gpu_opens_as_many_as_its_volume_takes() -> None:
    groups = [lone(f"m{at}", Footprint(30 * GIB)) for at in range(5)]
    assert part_of(todo(*groups), spare(70, 70), {}).fewest == 2
    assert part_of(todo(lone("m", Footprint(30 * GIB), 3)), spare(70, 70), {}).fewest == 3
    assert part_of(todo(lone("m", Footprint(30 * GIB), 3)), spare(70, 40), {}).fewest == 0
    assert part_of(todo(lone("w", Footprint(gpus=2), 2)), spare(70, 40), {}).fewest == 4


def test_every_domain_by_which_replicas_are_apart_has_candidates() -> None:
    nodes = [replace(linked_node(f"n{at:02}", 2), labels={ZONE: "xyz"[at % 3]}) for at in range(90)]
    group = replace(lone("m", Footprint(20 * GIB), 3), spread=(Spread(HOSTNAME), Spread(ZONE, required=True)))
    chosen = part_of(todo(group), spare_nodes(nodes, 0, []), {"m": {"n00"}}).nodes
    assert "n00" in chosen
    assert {node.labels[ZONE] for node in nodes if node.name in chosen} == {"x", "y", "z"}


def test_nodes_that_take_nothing_new_are_none() -> None:
    cordoned: Node = replace(linked_node("n00", 2), schedulable=False)
    assert spare_nodes([cordoned], 0, []) == []
