"""Nodes and their devices. Memory is in bytes, compute in thousandths of one GPU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.planning.requirements import NodeRequirements
from argosy.planning.spreading import HOSTNAME

_CPU_LABEL = "kubernetes.io/arch"
Device = tuple[str, int]
"""A node and the index of one of its GPUs."""


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
    """One device of a node. A CPU device (a node that serves without GPUs) is a `Gpu` with `is_cpu`.

    `withheld_by`: the other holder, as `Pod team/train-0` or `ServingPool default/a`, or what keeps all from it;
    empty where it may be planned with. `reclaimable`: that pool no longer needs it, and gives it up once another
    one claims it. `cordoned`: it is not used after device errors. `compute`: thousandths of a whole GPU's. The
    index of a slice says what it is (`planning/nodes/slices.py`). `closed`: why no other server gets it than the
    one that has it; `leaving`: what runs there moves to where there is room, and stays where there is none.
    `device`: what a DRA driver publishes, None of what a device plugin offers.
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
    drivers publish share. `unsteady`: how often its number of devices has changed lately, in words. `excluded`:
    published devices that are not among `gpus`, since those that are leave them nothing.
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
    unsteady: str = ""
    excluded: tuple[Gpu, ...] = ()

    def architecture(self, on_gpu: bool) -> str:
        """Return what an engine is compiled for: the compute capability of the GPUs, as `9.0`, or the CPU's name, as
        `amd64`.

        Empty where the node does not report its GPUs.
        """
        return self.compute_capability if on_gpu else self.labels.get(_CPU_LABEL, "amd64")

    @property
    def has_gpus(self) -> bool:
        """Whether it has GPUs, and not a CPU device in their place."""
        return any(not gpu.is_cpu for gpu in self.gpus)

    def domain(self, key: str) -> str:
        """Return the topology domain that it is in by a label; empty where it has no such label."""
        return self.labels.get(key, self.name if key == HOSTNAME else "")

    def meets(self, requirements: NodeRequirements) -> bool:
        """Return whether the node has the required labels, and GPUs that will do."""
        gpus = requirements.accepts_gpus(self.product, self.compute_capability, self.has_gpus)
        return gpus and not requirements.lacking(self.labels)
