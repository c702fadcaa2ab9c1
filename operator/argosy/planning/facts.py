"""The facts that a placement plan is made from: a frozen snapshot of nodes and of declared models.

Memory is in bytes, compute in thousandths of one GPU. Names are `namespace/name` keys where several namespaces can
meet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api.pool.packing import Preemption
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.planning.requirements import NOTHING, NodeRequirements
from argosy.planning.spreading import DEFAULT_SPREAD, HOSTNAME, Spread
from argosy_agent.contract import LoadedModel
from argosy_agent.contract.sizes import PLACED_BYTES, STAYING_BYTES

_CPU_LABEL = "kubernetes.io/arch"
Device = tuple[str, int]
"""A node and the index of one of its GPUs."""
Rank = tuple[bool, int]
"""Whether a replica is beyond its group's minimum, and its priority with the sign changed: less comes first."""


@dataclass(frozen=True, slots=True)
class DraDevice:
    """A GPU, or a part of one, that a DRA driver publishes and Pods have by a ResourceClaim.

    `driver`, `pool` and `name` identify it; `device_class` and `selector`, a CEL expression that it alone meets on its
    node, are what a ResourceClaim asks for. `profile`: of a part of a GPU. `consumes`: what it takes of its node's
    counters. `taint`: a taint that keeps new Pods away, as `key=value:NoSchedule`; `evicts`: it ends what runs.
    `order`: its place among the node's devices by their names. `fault`: why its pool of ResourceSlices cannot be used.
    """

    driver: str
    pool: str
    name: str
    device_class: str
    selector: str
    profile: str = ""
    consumes: tuple[tuple[str, int], ...] = ()
    taint: str = ""
    evicts: bool = False
    order: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device of a node. A CPU slot (a node that serves without GPUs) is a `Gpu` with `is_cpu`.

    `withheld_by`: the other holder, as `Pod team/train-0` or `ServingPool default/a`; empty where it may be planned
    with. `reclaimable`: that pool no longer needs it, and gives it up once another one claims it. `cordoned`: it is not
    used after device errors. `compute`: thousandths of a whole GPU's. The index of a slice says what it is
    (`planning/nodes/slices.py`). `closed`: why no other server gets it than the one that has it; `leaving`: what runs
    there moves to where there is room, and stays where there is none. `device`: what a DRA driver publishes, None of
    what a device plugin offers.
    """

    index: int
    memory: int
    uuid: str = ""
    is_cpu: bool = False
    withheld_by: str = ""
    reclaimable: bool = False
    cordoned: bool = False
    compute: int = 1000
    closed: str = ""
    leaving: bool = False
    device: DraDevice | None = None

    def usable(self, headroom: int) -> int:
        """Return the bytes that models may take when `headroom` thousandths stay free."""
        return self.memory * (1000 - headroom) // 1000


@dataclass(frozen=True, slots=True)
class Node:
    """A machine: its devices, and the groups of device indexes that NVLink joins.

    `ready` since when it is not, if known; not `schedulable` (cordoned): what runs there stays, nothing new comes.
    `stale`: these are its last known facts, so that what runs there stays though it does not answer. `lost`: for so
    long, or for this pool, that what runs there moves to where there is room, and stays where there is none. `boot_id`
    is another each time that it starts, empty where that is not known. `fault`: why its devices cannot be read, and the
    way out. `former`: devices that servers had when they were last noted, and that it no longer reports. `settings`:
    Argosy's annotations of it. `plugged`: a device plugin offers GPUs there. `counters`: what the devices that DRA
    drivers publish share.
    """

    name: str
    gpus: tuple[Gpu, ...]
    product: str = ""
    compute_capability: str = ""
    nvlink: tuple[frozenset[int], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    ready: bool = True
    schedulable: bool = True
    unready_since: datetime | None = None
    stale: bool = False
    lost: bool = False
    boot_id: str = ""
    fault: str = ""
    former: tuple[Gpu, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    plugged: bool = False
    counters: Mapping[str, int] = field(default_factory=dict)

    def architecture(self, on_gpu: bool) -> str:
        """Return what an engine is compiled for: the compute capability of the GPUs, as `9.0`, or the CPU's name, as
        `amd64`.

        Empty where the node does not report its GPUs.
        """
        return self.compute_capability if on_gpu else self.labels.get(_CPU_LABEL, "amd64")

    @property
    def has_gpus(self) -> bool:
        """Whether it has GPUs, and not a CPU slot in their place."""
        return any(not gpu.is_cpu for gpu in self.gpus)

    def domain(self, key: str) -> str:
        """Return the topology domain that it is in by a label; empty where it has no such label."""
        return self.labels.get(key, self.name if key == HOSTNAME else "")

    def meets(self, requirements: NodeRequirements) -> bool:
        """Return whether the node has the required labels, and GPUs that will do."""
        gpus = requirements.accepts_gpus(self.product, self.compute_capability, self.has_gpus)
        return gpus and not requirements.lacking(self.labels)


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
    where nothing lacks a place for that (`planning/packing/eviction/peaks.py`).
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
    in `footprint`). `architectures`: those with an engine; None: any. `minimum` and `priority` as in `Group`.
    `requires`: what its node must have.
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
    has together with it; it is so for both of two groups.
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

    @property
    def separated(self) -> bool:
        """Whether there are groups that it may not be next to."""
        return bool(self.not_on_server or self.not_on_node)

    @property
    def spread_required(self) -> bool:
        """Whether its replicas are spread in any case, so that a node without the label may have none."""
        return any(spread.required for spread in self.spread)

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
    must serve gives way to a higher priority.
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


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The observed state of one server; `error` is the reason why it does not run.

    `settled`: since it was started, every desired model was ready or failed once. `routes`: names in its Pod's labels;
    requests for them arrive once the Pod is Ready (`takes_requests`), and running ones continue when it is not.
    `written_at`: the time of the report by the agent's clock, 0 if unknown; `expired`: the report is too old to be
    trusted. `unsaid`: models for which the report had no space; their state here is the last one known.
    `unscheduled_since`: since when no node accepts its Pod.
    """

    name: str
    ready: bool
    models: tuple[LoadedModel, ...] = ()
    url: str = ""
    error: str = ""
    settled: bool = False
    takes_requests: bool = False
    routes: frozenset[str] = frozenset()
    grpc_address: str = ""
    written_at: int = 0
    expired: bool = False
    unsaid: frozenset[str] = frozenset()
    unscheduled_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object (`Service default/embedder`) that could not be applied for a resource, given by its identity.

    `message` says why, and the way out.
    """

    resource: str
    object: str
    message: str
