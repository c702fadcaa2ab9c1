"""One pool: its nodes, its groups, its limits, and where things sit now."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.api.pool.packing import Preemption
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.planning.facts.devices import Node
from argosy.planning.facts.groups import Footprint, Group, with_peak
from argosy_agent.contract.sizes import PLACED_BYTES, STAYING_BYTES


@dataclass(frozen=True, slots=True)
class Waiting:
    """A model that no server is to have yet: an enum-like `reason`, and a message with the way out."""

    model: str
    reason: str
    message: str
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class Need:
    """What a model that shares GPUs was placed with on each of them."""

    memory: int = 0
    compute: int = 0

    def is_less_than(self, need: Footprint) -> bool:
        """Return whether a footprint takes more, so that it may no longer fit next to its neighbours."""
        return need.exclusive or need.memory > self.memory or need.compute > self.compute


@dataclass(frozen=True, slots=True)
class CurrentServer:
    """Where things sit now, so that a new plan moves only what it must. `placed` maps model → device indexes; `needs`
    has what models that share GPUs were placed with, where that is known.
    """

    name: str
    node: str
    gpus: tuple[int, ...]
    placed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    needs: Mapping[str, Need] = field(default_factory=dict)

    @property
    def needed(self) -> frozenset[int]:
        """The GPUs that it cannot give up: those of its models, or all of them if it has no model.

        A server without models is kept for the next model (`minServers`), or is still draining.
        """
        if not self.placed:
            return frozenset(self.gpus)
        return frozenset(gpu for gpus in self.placed.values() for gpu in gpus)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """One pool: its nodes (already selected), its groups and its limits.

    `headroom`: thousandths of memory kept free. `taken`: names that no new server gets, in addition to those of
    `current`. `loaded`: the models that each server of `current` has loaded, including those that leave it. `waiting`:
    models that are in no group yet. `runtime`: the server program. `max_disruption`: the most servers, in thousandths,
    that one round may stop because their Nodes are gone. `placed_bytes`: the most bytes of a server's documents when a
    model is added to it; `staying_bytes`: the most with the models that are there already. `preemption`: whether what
    must serve gives way to a higher priority. `left_out`: in a pool without nodes, those that take nothing new, each
    with the reason.
    """

    pool: PoolKey
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    headroom: int = 200
    max_gpus_per_server: int | None = None
    min_servers: int = 0
    max_servers: int | None = None
    suspended: bool = False
    current: tuple[CurrentServer, ...] = ()
    taken: frozenset[str] = frozenset()
    loaded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    runtime: RuntimeName = RuntimeName.ARGOSY
    max_disruption: int = 250
    placed_bytes: int = PLACED_BYTES
    staying_bytes: int = STAYING_BYTES
    preemption: Preemption = Preemption.NEVER
    left_out: tuple[str, ...] = ()

    def part(self, nodes: Collection[str], groups: Sequence[Group]) -> "PoolFacts":
        """Return the facts of some nodes for some groups. Servers of other nodes keep their names."""
        return replace(
            self,
            nodes=tuple(node for node in self.nodes if node.name in nodes),
            groups=tuple(groups),
            current=tuple(server for server in self.current if server.node in nodes),
            taken=self.taken | {server.name for server in self.current},
        )

    @property
    def with_peaks(self) -> "PoolFacts":
        """The facts in which models take what they had when they crashed, where that is more; the same ones where it is
        not.
        """
        groups = tuple(
            group.with_footprints(with_peak) if any(demand.footprint.peak for demand in group.demands) else group
            for group in self.groups
        )
        return self if groups == self.groups else replace(self, groups=groups)
