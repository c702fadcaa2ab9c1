"""A pool's plan without the GPUs that other pools claim for what comes before all that it has there."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from argosy.planning.facts import Claim, Device, Gpu, Node, PoolFacts
from argosy.planning.nodes.holders import pool_holder
from argosy.planning.nodes.reservations import devices
from argosy.planning.packing.shared_nodes.preemptible import preemptible_gpus
from argosy.planning.packing.solve import pack
from argosy.planning.plan import LostPlacement, PoolPlan, replica_counts


def without_claimed(facts: PoolFacts, plan: PoolPlan, claims: Mapping[Device, Claim]) -> PoolPlan:
    """Return a pool's plan without the GPUs for which another pool's claim comes first. What is on them gets another
    place if there is one.

    What gave way is not placed on a GPU that is claimed, too: so none of them is taken back before its new pool has it.
    """
    others = {device: claim for device, claim in claims.items() if claim.pool != facts.pool}
    gone = plan.preempted & others.keys()
    before, after = plan, plan
    while new := _outranked(facts, after, others):
        gone |= new
        after = pack(replace(facts, nodes=tuple(_left(node, gone, others) for node in facts.nodes)))
    if after is before:
        return plan
    earlier = (one for one in before.lost if one.other_pool is not None)
    lost = {*after.lost, *earlier, *_lost(facts, before, after, {device: others[device] for device in gone})}
    ordered = tuple(sorted(lost, key=lambda one: (one.group, one.server, one.winner)))
    return replace(after, preempted=gone, lost=ordered)


def _outranked(facts: PoolFacts, plan: PoolPlan, claims: Mapping[Device, Claim]) -> frozenset[Device]:
    """Return the claimed GPUs of a plan that go to what claims them."""
    if claims.keys().isdisjoint(devices(plan.servers)):
        return frozenset()
    gpus = preemptible_gpus(facts, plan, new_too=True)
    return frozenset(device for device in claims.keys() & gpus.keys() if claims[device].rank < gpus[device].rank)


def _left(node: Node, gone: Collection[Device], claims: Mapping[Device, Claim]) -> Node:
    def left(gpu: Gpu) -> Gpu:
        device = (node.name, gpu.index)
        if gpu.withheld_by or device not in gone:
            return gpu
        return replace(gpu, withheld_by=pool_holder(claims[device].pool))

    return replace(node, gpus=tuple(map(left, node.gpus)))


def _lost(facts: PoolFacts, before: PoolPlan, after: PoolPlan, gone: Mapping[Device, Claim]) -> Iterator[LostPlacement]:
    """Yield the running replicas that had a place on such a GPU, of groups that have fewer replicas without it."""
    fewer = replica_counts(before.servers) - replica_counts(after.servers)
    running = {server.name: server.placed for server in facts.current}
    groups = {group.name: group for group in facts.groups}
    for server in before.servers:
        for one in server.placements:
            claim = next((gone[server.node, gpu] for gpu in one.gpus if (server.node, gpu) in gone), None)
            if claim is not None and fewer[one.group] and one.model in running.get(server.name, ()):
                priority = groups[one.group].priority
                yield LostPlacement(one.group, server.name, priority, claim.group, claim.priority, claim.pool)
