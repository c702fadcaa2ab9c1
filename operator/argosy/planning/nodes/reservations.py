"""Reservations of GPUs: those withheld from a pool's plan, and those that its servers keep.

Kubernetes counts GPUs without identifying them, so this module decides which of them are held.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Device, Gpu, Node, PoolFacts, ServerReport
from argosy.planning.nodes.holders import pod_holder, pool_holder
from argosy.planning.nodes.slices import GPU_RESOURCE, resource_of
from argosy.planning.plan import PoolPlan, ServerPlan

PodGpus = Mapping[str, Mapping[str, int]]
"""GPUs that Pods hold which are not ours: by node, and there by the Pod's `namespace/name`.

Slices are listed by node and resource, as `node/nvidia.com/mig-1g.10gb`.
"""


def reserved(
    nodes: Iterable[Node],
    own: Iterable[CurrentServer],
    others: Mapping[PoolKey, Iterable[CurrentServer]],
    pods: PodGpus | None = None,
    conceded: Collection[Device] = (),
    preempted: Collection[Device] = (),
) -> tuple[Node, ...]:
    """Return the nodes, with the holder of every GPU that is withheld from the pool.

    `own`: the pool's servers; `others`: those of other pools, by the pool's key. GPUs are reserved in this order: those
    that another pool needs, those that this pool needs, those that another pool has without need (reclaimable), those
    that this pool has. Other Pods get the highest indexes of the rest, so running servers keep theirs. If these do not
    suffice, Pods get GPUs of the pool's own that are `conceded`. Those that another pool leaves to what comes before
    it (`preempted`) count as without need.
    """
    mine = tuple(own)
    needed, spare = _holders(others, frozenset(preempted))
    rights = _Rights(needed, needed_gpus(mine), spare, devices(mine), conceded)
    return tuple(_reserved(node, rights, pods or {}) for node in nodes)


def devices(servers: Iterable[CurrentServer | ServerPlan]) -> set[Device]:
    """Return the GPUs that these servers hold."""
    return {(server.node, gpu) for server in servers for gpu in server.gpus}


def needed_gpus(servers: Iterable[CurrentServer]) -> set[Device]:
    """Return the GPUs that these servers need of those that they hold."""
    return {(server.node, gpu) for server in servers for gpu in server.needed}


def withheld(nodes: Iterable[Node]) -> dict[str, int]:
    """Return how many GPUs of the nodes others hold, by holder."""
    counts: dict[str, int] = {}
    for node in nodes:
        for gpu in node.gpus:
            if gpu.withheld_by:
                counts[gpu.withheld_by] = counts.get(gpu.withheld_by, 0) + 1
    return counts


def reclaimable(nodes: Iterable[Node]) -> dict[Device, str]:
    """Return the GPUs that other pools hold without need, and which pool does."""
    return {(node.name, gpu.index): gpu.withheld_by for node in nodes for gpu in node.gpus if gpu.reclaimable}


def retained(
    plan: PoolPlan, facts: PoolFacts, taken: Collection[Device] = (), claimed: Collection[Device] = ()
) -> PoolPlan:
    """Return the plan, in which a server that lost models keeps GPUs it no longer needs until others want one of them.

    To take a GPU away restarts the server, and interrupts all else that it serves. It gives up all that it does not
    need if that happens anyway: where another server of the plan gets one, one is `taken` by another pool, or the node
    has one no longer. For what other pools have `claimed` it does so once nothing is loaded on it that leaves.
    """
    planned, claims = devices(plan.servers) | set(taken), set(claimed)
    there = {(node.name, gpu.index) for node in facts.nodes for gpu in node.gpus if not gpu.withheld_by}
    running = {server.name: server for server in facts.current}

    def retained(server: ServerPlan) -> ServerPlan:
        before = running.get(server.name)
        if before is None or not _shrinks(server, before):
            return server
        had = {(server.node, gpu) for gpu in before.gpus}
        spare = had - devices([server])
        leaving = facts.loaded.get(server.name, frozenset()) - {placement.model for placement in server.placements}
        if spare & planned or (spare & claims and not leaving) or not had <= there:
            return server
        return replace(server, gpus=tuple(sorted(before.gpus)))

    servers = tuple(map(retained, plan.servers))
    return replace(plan, servers=servers, gpus_used=sum(len(server.gpus) for server in servers))


def _shrinks(server: ServerPlan, before: CurrentServer) -> bool:
    """Return whether a server that stays on its node needs fewer GPUs than it has."""
    return before.node == server.node and bool(server.placements) and set(server.gpus) < set(before.gpus)


@dataclass(frozen=True, slots=True)
class _Rights:
    """What has a right to each GPU, the strongest right first."""

    needed_by_others: Mapping[Device, str]
    needed: Collection[Device]
    spare_of_others: Mapping[Device, str]
    own: Collection[Device]
    conceded: Collection[Device]

    def holder(self, device: Device) -> tuple[str, bool] | None:
        """Return which other pool holds it, and whether without need; None if none does."""
        if device in self.needed_by_others:
            return self.needed_by_others[device], False
        if device not in self.needed and device in self.spare_of_others:
            return self.spare_of_others[device], True
        return None


def _holders(
    pools: Mapping[PoolKey, Iterable[CurrentServer]], preempted: Collection[Device]
) -> tuple[dict[Device, str], dict[Device, str]]:
    """Return the pool that needs each GPU, and the one that holds it without need."""
    needed: dict[Device, str] = {}
    spare: dict[Device, str] = {}
    for pool in sorted(pools):
        for server in pools[pool]:
            for gpu in server.gpus:
                device = (server.node, gpu)
                holders = needed if gpu in server.needed and device not in preempted else spare
                holders.setdefault(device, pool_holder(pool))
    return needed, spare


def pods_key(node: str, resource: str) -> str:
    """Return the key of `PodGpus` for what Pods hold of a resource on a node."""
    return node if resource == GPU_RESOURCE else f"{node}/{resource}"


def _reserved(node: Node, rights: _Rights, pods: PodGpus) -> Node:
    open_to_us = [gpu.index for gpu in node.gpus if not gpu.is_cpu and not gpu.withheld_by]
    holders = {index: holder for index in open_to_us if (holder := rights.holder((node.name, index)))}
    rest = sorted((index for index in open_to_us if index not in holders), reverse=True)
    for resource in {resource_of(index) for index in rest}:
        held = pods.get(pods_key(node.name, resource), {})
        holders |= _held_by_pods(node.name, [index for index in rest if resource_of(index) == resource], rights, held)
    return replace(node, gpus=tuple(_with_holder(gpu, holders) for gpu in node.gpus)) if holders else node


def _held_by_pods(
    node: str, rest: Sequence[int], rights: _Rights, pods: Mapping[str, int]
) -> dict[int, tuple[str, bool]]:
    """Return the GPUs that count as those of Pods, with these as their holders."""
    unowned = [index for index in rest if (node, index) not in rights.own]
    conceded = [index for index in rest if index not in unowned and (node, index) in rights.conceded]
    named = zip((*unowned, *conceded), _one_per_gpu(pods), strict=False)
    return {index: (pod_holder(pod), False) for index, pod in named}


def _one_per_gpu(pods: Mapping[str, int]) -> Iterator[str]:
    """Return every Pod's name as often as it holds a GPU."""
    return (pod for pod in sorted(pods) for _ in range(pods[pod]))


def _with_holder(gpu: Gpu, holders: Mapping[int, tuple[str, bool]]) -> Gpu:
    if gpu.is_cpu or gpu.index not in holders:
        return gpu
    holder, reclaimable = holders[gpu.index]
    return replace(gpu, withheld_by=holder, reclaimable=reclaimable)


CONCESSION_DELAY = timedelta(seconds=60)
"""How long a server's Pod may find no node before its GPUs are conceded: Pods that end need a while, too."""


def conceded(servers: Iterable[CurrentServer], reports: Iterable[ServerReport], now: datetime) -> set[Device]:
    """Return the GPUs of the servers whose Pods have found no node for `CONCESSION_DELAY`."""
    stuck = {
        report.name
        for report in reports
        if report.unscheduled_since and now >= report.unscheduled_since + CONCESSION_DELAY
    }
    return devices(server for server in servers if server.name in stuck)


def next_concession(reports: Iterable[ServerReport], now: datetime) -> datetime | None:
    """Return when the next Pod has waited that long, if any waits."""
    ends = (report.unscheduled_since + CONCESSION_DELAY for report in reports if report.unscheduled_since)
    return min((end for end in ends if end > now), default=None)
