"""Remedies by what else is placed: a place that is taken from lower priorities, fewer replicas, others that leave."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from argosy.api.pool.packing import Preemption
from argosy.planning.amounts import listed
from argosy.planning.explanation.remedies.devices import DeviceUse, PoolDevices, shared_demand
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.explanation.remedies.trial import Seat
from argosy.planning.facts import Group, Node
from argosy.planning.nodes.device_names import devices_of
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.shared_nodes.claiming import with_free
from argosy.planning.packing.shared_nodes.preemptible import servers_giving_way

_TRIED = 2
"""Places that are tried, those of which the least is taken."""
_NAMED = 3


def preemption(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the setting by which a replica that must serve takes the place of lower priorities, and whose it takes."""
    trial = pool.trial
    if trial.facts.preemption is not Preemption.NEVER or trial.placed[group.name] >= group.needed:
        return
    for node in _nodes_with_lower(pool, group)[:_TRIED]:
        part = trial.part(group, [node])
        outcome = trial.outcome(replace(part, facts=replace(part.facts, preemption=Preemption.LOWER_PRIORITY)))
        if outcome is not None and outcome.lost:
            losers = (f"{name} with priority {trial.groups[name].priority}" for name in sorted(outcome.lost))
            text = f"packing.preemption: LowerPriority in the pool, which takes it from {listed(losers, _NAMED, ', ')}"
            yield Remedy(RemedyKind.PREEMPTION, text)
            return


def preemption_of_other_pools(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the setting of another pool by which a replica that must serve takes the place of a server with lower
    priorities alone, and whose it takes: of another namespace nothing but the pool is named.
    """
    trial = pool.trial
    has = trial.placed[group.name]
    if has >= group.needed:
        return
    able = pool.able(group)
    for server in servers_giving_way(able, trial.protected, group.rank(has))[:_TRIED]:
        (node,) = {name for name, _ in server}
        part = trial.part(group, [node])
        nodes = tuple(with_free(one, server) for one in part.facts.nodes)
        if trial.fits(replace(part, facts=replace(part.facts, nodes=nodes))):
            lost = next(iter(server.values()))
            setting = f"packing.preemption: LowerPriority in ServingPool {lost.pool}"
            losers = listed((f"{name} with priority {-rank[1]}" for rank, name in lost.losses), _NAMED, ", ")
            is_shown = lost.pool.namespace == trial.facts.pool.namespace
            yield Remedy(RemedyKind.PREEMPTION, f"{setting}, which takes it from {losers}" if is_shown else setting)
            return


def _nodes_with_lower(pool: PoolDevices, group: Group) -> list[str]:
    """Return the nodes that have something of a lower priority where the group may be: the lowest priority first."""
    lowest: dict[str, tuple[int, int]] = {}
    for device, rivals in _occupied(pool, group):
        lower = [rival for rival in rivals if rival.priority < group.priority]
        if lower and _would_do(device, group, lower):
            least = min(rival.priority for rival in lower), device.taken
            lowest[device.node.name] = min(lowest.get(device.node.name, least), least)
    return sorted(lowest, key=lambda node: (lowest[node], node))


def higher_priority(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the priority above which a replica takes the place of another one, and whose it is."""
    for priority, node in _rivals(pool, group)[:_TRIED]:
        raised = replace(
            group,
            priority=priority + 1,
            demands=tuple(replace(demand, priority=priority + 1) for demand in group.demands),
        )
        outcome = pool.trial.outcome(pool.trial.part(raised, [node]))
        if outcome is not None and outcome.lost:
            losers = listed(sorted(outcome.lost), _NAMED, ", ")
            yield Remedy(RemedyKind.PRIORITY, f"a priority above {priority}, which takes it from {losers}")
            return


def _rivals(pool: PoolDevices, group: Group) -> list[tuple[int, str]]:
    """Return the priorities of what has a place that would do, with its node: the lowest first."""
    taken: dict[tuple[int, str], int] = {}
    for device, rivals in _occupied(pool, group):
        for rival in rivals:
            if rival.priority >= group.priority and _would_do(device, group, [rival]):
                key = rival.priority, device.node.name
                taken[key] = min(taken.get(key, device.taken), device.taken)
    return sorted(taken, key=lambda key: (key[0], taken[key], key[1]))


def _occupied(pool: PoolDevices, group: Group) -> Iterator[tuple[DeviceUse, list[Group]]]:
    """Yield the GPUs where a group may be, each with the other groups that have a replica on it."""
    able = {node.name for node in pool.able(group)}
    for device in pool.devices.values():
        if device.node.name in able:
            yield device, [pool.trial.groups[name] for name in device.groups if name != group.name]


def _would_do(device: DeviceUse, group: Group, rivals: Sequence[Group]) -> bool:
    """Return whether a GPU has the memory of a group's only shared model once rivals have left it."""
    demand = shared_demand(group)
    if demand is None:
        return True
    freed = sum(one.footprint.memory for rival in rivals for one in rival.demands)
    return demand.footprint.settled <= device.empty.memory and demand.footprint.settled <= device.left.memory + freed


def fewer_replicas(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield as many replicas as have a place, which takes no trial: they have it."""
    placed = pool.trial.placed[group.name]
    if 0 < placed < group.replicas:
        yield Remedy(RemedyKind.REPLICAS, f"replicas {group.replicas} → {placed}")


@dataclass(frozen=True, slots=True)
class _Clearing:
    """What would have to leave GPUs of a node."""

    node: Node
    gpus: tuple[int, ...]
    seats: frozenset[Seat]
    bytes: int


def others_that_leave(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the replicas without which GPUs of a node would be free for a group that needs more than a part of one.
    They are others than its own.
    """
    if shared_demand(group) is not None or pool.cpu_only:
        return
    clearings = [one for node in pool.able(group) for one in _clearings(pool, group, node) if one.seats]
    clearings.sort(key=lambda one: (len(one.seats), one.bytes, one.node.name, one.gpus))
    for clearing in clearings[:_TRIED]:
        part = pool.trial.part(group, [clearing.node.name], without=clearing.seats)
        if pool.trial.fits(part):
            replicas = sorted(Counter(name for _, name in clearing.seats).items())
            names = listed((f"{name} x{count}" if count > 1 else name for name, count in replicas), _NAMED, ", ")
            where = f"{devices_of(clearing.node, clearing.gpus)} of node {clearing.node.name}"
            yield Remedy(RemedyKind.OTHERS, f"take {names} off {where}")
            return


def _clearings(pool: PoolDevices, group: Group, node: Node) -> Iterator[_Clearing]:
    every = (device for device in pool.of_node(node.name) if not is_slice(device.index))
    unsliced = [device for device in every if group.name not in device.groups]
    need = group.demands[0].footprint
    if len(group.demands) == 1 and need.exclusive:
        sets = node.nvlink if need.gpus > 1 else (frozenset(device.index for device in unsliced),)
        for joined in sets:
            able = [device for device in unsliced if device.index in joined and need.settled <= device.empty.memory]
            able.sort(key=lambda device: (device.taken, device.index))
            if len(able) >= need.gpus:
                yield _clearing(node, able[: need.gpus])
        return
    for server in pool.trial.on_node.get(node.name, ()):
        yield _clearing(node, [device for device in unsliced if device.index in server.gpus])


def _clearing(node: Node, cleared: list[DeviceUse]) -> _Clearing:
    seats = frozenset((server.name, name) for device in cleared for server, name in device.on)
    taken = sum(device.taken for device in cleared)
    return _Clearing(node, tuple(sorted(device.index for device in cleared if device.on)), seats, taken)
