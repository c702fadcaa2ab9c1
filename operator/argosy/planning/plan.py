"""The placement plan: the servers, and the models on each of their devices."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api.values.identity import PoolKey, in_pool
from argosy.planning.facts import Claim, CurrentServer, Device, Footprint, Need


@dataclass(frozen=True, slots=True)
class Unreserved:
    """Why a candidate has no memory on a server next to the stable revision, as a clause. `rollouts`: the models whose
    rollouts have the memory until they end; without any, waiting does not help. `alone`: it fits in place of that.
    """

    message: str
    rollouts: tuple[str, ...] = ()
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Placement:
    """One replica of a model on a server. `gpus` are device indexes of the node; empty means the server's CPU.
    `instances`: on each of them; `shares`: the GPUs among which it is divided, 1 where it is not. `surge`: bytes on
    each of them, or of the CPU's memory, that are reserved for the candidate of a rollout in addition to `memory`;
    `unreserved`: why there are none, where it asks for some. `misplaced`: it runs where it may not be, for lack of
    another place.
    """

    model: str
    version: int
    group: str
    gpus: tuple[int, ...]
    instances: int
    memory: int  # bytes on each of `gpus`
    compute: int  # thousandths on each of `gpus`
    exclusive: bool = False
    surge: int = 0
    unreserved: Unreserved | None = None
    shares: int = 1
    misplaced: bool = False

    @property
    def need(self) -> Footprint:
        """What it takes of each of its GPUs, with the candidate of its rollout."""
        return Footprint(self.memory + self.surge, self.compute)


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One runtime process: its node, the devices it holds, and what it serves."""

    name: str
    node: str
    gpus: tuple[int, ...]
    placements: tuple[Placement, ...]

    @property
    def groups(self) -> set[str]:
        """The groups that have a replica on it."""
        return {placement.group for placement in self.placements}

    @property
    def current(self) -> CurrentServer:
        """Where things sit on it once it is so."""
        placed = {placement.model: placement.gpus for placement in self.placements}
        return CurrentServer(self.name, self.node, self.gpus, placed, self.needs)

    @property
    def needs(self) -> dict[str, Need]:
        """What its models that share GPUs are placed with."""
        shared = (one for one in self.placements if not one.exclusive and (one.memory or one.compute))
        return {one.model: Need(one.memory, one.compute) for one in shared}


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A group's replica that fits nowhere: an enum-like `reason` and a message with the numbers and the way
    out.
    """

    group: str
    models: tuple[str, ...]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LostPlacement:
    """A replica of a group that has no place any more on a server where the plan's facts had one, because it gave way
    to a `winner`; with the priorities of both. `other_pool`: that of the winner in a loser's plan, and that of the
    loser in a winner's; None where both are of one pool.
    """

    group: str
    server: str
    priority: int
    winner: str
    winner_priority: int
    other_pool: PoolKey | None = None

    def winner_for(self, pool: PoolKey) -> str:
        """Return the winner as a status of the loser's pool names it."""
        shown = self.shown_to(pool, self.winner)
        return in_pool(shown, self.other_pool) if self.other_pool is not None else shown

    def shown_to(self, pool: PoolKey, other: str) -> str:
        """Return the name of the other one as a pool's statuses have it: empty where it is in another namespace."""
        return other if self.other_pool is None or self.other_pool.namespace == pool.namespace else ""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """One pool's plan.

    `gpus_total` counts the GPUs of the pool's ready nodes, including `withheld` ones (by holder). `gpus_one_per_model`:
    the GPUs of the same replicas if no two models shared one. `claims`: GPUs of other pools' servers that the unplaced
    replicas would use: these hold them without need, or for what comes after. `preempted`: GPUs that the pool leaves to
    such claims. `lost`: places that this plan takes from what runs; `gained`: those that it takes in other pools.
    """

    pool: PoolKey
    servers: tuple[ServerPlan, ...]
    unplaced: tuple[Unplaced, ...]
    gpus_total: int
    gpus_used: int
    gpus_one_per_model: int
    withheld: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[Device, Claim] = field(default_factory=dict)
    preempted: frozenset[Device] = frozenset()
    lost: tuple[LostPlacement, ...] = ()
    gained: tuple[LostPlacement, ...] = ()

    @property
    def taken(self) -> Iterator[tuple[Device, Footprint]]:
        """What the placements take of GPUs."""
        for server in self.servers:
            for placement in server.placements:
                yield from (((server.node, gpu), placement.need) for gpu in placement.gpus)

    @property
    def gpus_withheld(self) -> int:
        """GPUs that others hold."""
        return sum(self.withheld.values())

    @property
    def gpus_free(self) -> int:
        """GPUs that have no holder."""
        return self.gpus_total - self.gpus_used - self.gpus_withheld

    @property
    def current(self) -> tuple[CurrentServer, ...]:
        """Where things sit once the plan is carried out: what the facts of the next one start from."""
        return tuple(server.current for server in self.servers)


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Every pool's plan."""

    pools: tuple[PoolPlan, ...]

    @property
    def gpus_used(self) -> int:
        """GPUs held by servers, over all pools."""
        return sum(pool.gpus_used for pool in self.pools)

    @property
    def gpus_one_per_model(self) -> int:
        """GPUs that one model per GPU would take, over all pools."""
        return sum(pool.gpus_one_per_model for pool in self.pools)


def replica_counts(servers: Iterable[ServerPlan]) -> Counter[str]:
    """Return how many replicas of each group servers have."""
    return Counter(group for server in servers for group in server.groups)
