"""What is to be placed: the needs of models, and the groups of them that share a server."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy.planning.facts.devices import Node
from argosy.planning.requirements import NOTHING, NodeRequirements
from argosy.planning.spreading import DEFAULT_SPREAD, Spread

Rank = tuple[bool, int]
"""Whether a replica is beyond its group's minimum, and its priority with the sign changed: less comes first."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The needs of one replica's one instance set.

    A shared model (`gpus` 0) takes `memory` and `compute` of one GPU. An exclusive one takes `gpus` GPUs for itself,
    each with at least `memory`, joined by NVLink where `gpus` > 1. Both zero: it runs on the CPU alongside others.
    `assumed`: its needs are neither declared nor measured, so it has a GPU of its own. `first_gpus`: its GPUs must be
    the first of its server. `surge`: bytes that a rollout takes there in addition to `memory`, of the headroom, too,
    for the candidate that is loaded next to the stable revision; `promoted`: what takes the place of `memory` once it
    is promoted, 0 without a rollout. `shares`: the GPUs of a shared model, each of which has as many of its instances
    and takes `memory` and `compute`. `peak`: bytes that it had on a GPU before a process of it crashed, left to it
    where nothing lacks a place for that.
    """

    memory: int = 0
    compute: int = 0
    gpus: int = 0
    assumed: bool = False
    first_gpus: bool = False
    surge: int = 0
    promoted: int = 0
    shares: int = 1
    peak: int = 0

    @property
    def exclusive(self) -> bool:
        """Whether it takes GPUs for itself."""
        return self.gpus > 0

    @property
    def on_cpu(self) -> bool:
        """Whether it needs no GPU at all."""
        return self.gpus == 0 and self.memory == 0 and self.compute == 0

    @property
    def settled(self) -> int:
        """The bytes of one revision: of the larger one, while one is to take the other's place."""
        return max(self.memory, self.promoted)

    @property
    def surged(self) -> int:
        """The bytes of both revisions."""
        return max(self.settled, self.memory + self.surge)


@dataclass(frozen=True, slots=True)
class Demand:
    """One model to place: `replicas` on different servers, `instances` per device and loaded `versions` (both included
    in `footprint`). `architectures`: those with an engine; None: any. `minimum`, `declared` and `priority` as in
    `Group`. `requires`: what its node must have. `divisible`: its instances may be divided among GPUs of a server.
    `splittable`: one instance may be spread over several GPUs.
    """

    model: str
    version: int
    footprint: Footprint
    replicas: int = 1
    instances: int = 1
    versions: int = 1
    architectures: frozenset[str] | None = None
    minimum: int = 1
    priority: int = 0
    requires: NodeRequirements = NOTHING
    declared: int = 0
    divisible: bool = False
    splittable: bool = True

    def runs_on(self, node: Node) -> bool:
        """Return whether the node has what the model requires, and there is an engine for it."""
        return (self.requires is NOTHING or node.meets(self.requires)) and self.has_engine_for(node)

    def has_engine_for(self, node: Node) -> bool:
        """Return whether there is an engine for the node's GPUs, or for its CPU where it runs on that."""
        if self.architectures is None:
            return True
        return not self.architectures.isdisjoint((node.architecture(on_gpu=True), node.architecture(on_gpu=False)))


@dataclass(frozen=True, slots=True)
class Group:
    """Demands that must share a server: an ensemble's models, or one model alone. `replicas` are on different servers.

    `minimum`: the number of required replicas (None: all). Further ones give way to groups without a replica, and to
    higher `priority`. `size`: the most bytes that one replica takes of its server's documents. `surging`: a server has
    a candidate loaded by now, so that each replica keeps memory for both; before that all of them do, or none.
    `spread`: how replicas are apart, by nodes first. `not_on_server`, `not_on_node`: groups that no server, or no node,
    has together with it; it is so for both of two groups. `declared`: the replicas that a spec sets, and not scaling:
    each that has no place is reported, required or not.
    """

    name: str
    demands: tuple[Demand, ...]
    replicas: int = 1
    minimum: int | None = None
    priority: int = 0
    size: int = 0
    surging: bool = False
    spread: tuple[Spread, ...] = DEFAULT_SPREAD
    not_on_server: frozenset[str] = frozenset()
    not_on_node: frozenset[str] = frozenset()
    declared: int = 0

    @property
    def separated(self) -> bool:
        """Whether there are groups that it may not be next to."""
        return bool(self.not_on_server or self.not_on_node)

    @property
    def spread_required(self) -> bool:
        """Whether its replicas are spread in any case, so that a node without the label may have none."""
        return any(spread.required for spread in self.spread)

    @property
    def on_cpu(self) -> bool:
        """Whether none of its models needs a GPU."""
        return all(demand.footprint.on_cpu for demand in self.demands)

    @property
    def first_gpus(self) -> bool:
        """Whether one of its models needs the first GPUs of its server."""
        return any(demand.footprint.first_gpus for demand in self.demands)

    @property
    def needed(self) -> int:
        """The required replicas."""
        return self.replicas if self.minimum is None else min(self.minimum, self.replicas)

    def rank(self, others: int) -> Rank:
        """Return the rank of one of its replicas next to so many others of it."""
        return others >= self.needed, -self.priority

    @property
    def in_rollout(self) -> bool:
        """Whether a candidate takes memory in addition, or more than the stable revision."""
        return any(demand.footprint.surged > demand.footprint.memory for demand in self.demands)

    def with_footprints(self, footprint: Callable[[Footprint], Footprint]) -> "Group":
        """Return the group with another footprint for each of its models."""
        return replace(self, demands=tuple(replace(d, footprint=footprint(d.footprint)) for d in self.demands))

    def anywhere(self) -> "Group":
        """Return the group without what it requires of nodes, but for engines: of what runs and has no other place."""
        demands = tuple(replace(demand, requires=NOTHING) for demand in self.demands)
        nothing = frozenset[str]()
        return replace(self, demands=demands, spread=DEFAULT_SPREAD, not_on_server=nothing, not_on_node=nothing)

    def runs_on(self, node: Node) -> bool:
        """Return whether the node has what every model requires, and there are engines for it."""
        return all(demand.runs_on(node) for demand in self.demands)

    def has_engines_for(self, node: Node) -> bool:
        """Return whether every model has an engine for the node, of those that need one."""
        return all(demand.has_engine_for(node) for demand in self.demands)


def without_surge(need: Footprint) -> Footprint:
    """Return the footprint with memory for the larger one of two revisions, and not for both."""
    return replace(need, surge=0)


def without_candidate(need: Footprint) -> Footprint:
    """Return the footprint of the stable revision alone."""
    return replace(need, surge=0, promoted=0)


def with_peak(need: Footprint) -> Footprint:
    """Return the footprint with what a model had on a GPU when a process of it crashed, where that is more."""
    return replace(need, memory=max(need.memory, need.peak), peak=0)
