"""GPUs between pools on the same nodes: what one pool claims, and what another one would lose with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api.values.identity import PoolKey
from argosy.planning.facts.devices import Device
from argosy.planning.facts.groups import Rank


@dataclass(frozen=True, slots=True)
class Claim:
    """The highest rank that a pool would place on a GPU of another pool, and the group that has it."""

    pool: PoolKey
    group: str
    rank: Rank

    @property
    def priority(self) -> int:
        """The priority of the group."""
        return -self.rank[1]


def highest_claims(every: Iterable[Mapping[Device, Claim]]) -> dict[Device, Claim]:
    """Return the highest claim on each GPU; of several that are equal, that of the first pool by name."""
    highest: dict[Device, Claim] = {}
    for claims in every:
        for device, claim in claims.items():
            highest[device] = min(highest.get(device, claim), claim, key=lambda one: (one.rank, one.pool))
    return highest


@dataclass(frozen=True, slots=True)
class PreemptibleGpu:
    """A GPU of a server whose replicas all give way to what comes before them. `losses`: the rank of each replica of
    the server and its group, the highest rank first; `memory`: the bytes that all of them take.
    """

    pool: PoolKey
    server: str
    losses: tuple[tuple[Rank, str], ...]
    memory: int

    @property
    def rank(self) -> Rank:
        """The rank that a claim must come before."""
        return self.losses[0][0]

    @property
    def price(self) -> tuple[list[tuple[bool, int]], int, str]:
        """How bad it is to lose what is there: the highest ranks count most, then their number, then the memory."""
        return [(not beyond, -opposite) for (beyond, opposite), _ in self.losses], self.memory, self.server


@dataclass(frozen=True, slots=True)
class OtherPools:
    """Pools on the same nodes that are not planned together with these. By GPU: `claims`, the highest of each,
    `preemptible` ones, and `protected` ones, which would be so if their pools let higher priorities take them.
    `lacking`: the groups that lack a replica, each with its pool.
    """

    claims: Mapping[Device, Claim] = field(default_factory=dict)
    preemptible: Mapping[Device, PreemptibleGpu] = field(default_factory=dict)
    lacking: frozenset[tuple[PoolKey, str]] = frozenset()
    protected: Mapping[Device, PreemptibleGpu] = field(default_factory=dict)
