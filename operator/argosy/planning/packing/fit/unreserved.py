"""Why the candidate of a rollout gets no memory on a server: the first reason, with the numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

from argosy.planning.amounts import gib, listed, percent
from argosy.planning.facts import Demand, Footprint
from argosy.planning.nodes.device_names import device_of
from argosy.planning.packing.layout import Layout, PlacedReplica, Server
from argosy.planning.plan import Unreserved


@dataclass(frozen=True, slots=True)
class _Device:
    """A GPU, or a node's CPU memory, with what a model shares it with. `usable` and `total`: bytes, the latter with
    the headroom.
    """

    name: str
    usable: int
    total: int
    others: tuple[Demand, ...]

    @property
    def _needs(self) -> list[Footprint]:
        return [other.footprint for other in self.others]

    def unreserved(self, demand: Demand, headroom: int) -> Unreserved | None:
        """Return why there is no memory for a model's candidate here; None if there is."""
        need, needs = demand.footprint, self._needs
        free = self.usable - sum(other.settled for other in needs)
        if need.settled > free:
            reserve = f" (memoryHeadroom keeps {percent(headroom)} free)" if headroom else ""
            return Unreserved(
                f"{demand.model} takes {gib(need.settled)} once its candidate is promoted, and {gib(max(0, free))} of "
                f"{self.name} are left for it{reserve}",
                alone=False,
            )
        free = self.total - sum(other.surged for other in needs)
        if need.surged <= free:
            return None
        both = f"{demand.model} takes {gib(need.surged)} of {self.name} with its candidate"
        if need.surged > self.total - sum(other.memory for other in needs):
            return Unreserved(f"{both}, and {gib(max(0, free))} are left for it")
        others = tuple(other.model for other in self.others if other.footprint.surge)
        reserved = sum(other.surge for other in needs)
        return Unreserved(
            f"{both}, where {gib(reserved)} are reserved until the rollout of {listed(others)} ends", others
        )


def unreserved(layout: Layout, server: Server, placed: PlacedReplica, demand: Demand) -> Unreserved | None:
    """Return why a model of a placed replica has no memory for its candidate; None where it has, or has no candidate.

    `demand`: the model with the footprint that is asked for.
    """
    demands = placed.replica.group.demands
    at = next(at for at, one in enumerate(demands) if one.model == demand.model)
    if demands[at].footprint == demand.footprint:
        return None
    headroom = layout.topology.facts.headroom
    reasons = (
        device.unreserved(demand, headroom) for device in _devices(layout, server, demand.model, placed.assignment[at])
    )
    return next((reason for reason in reasons if reason is not None), None)


def _devices(layout: Layout, server: Server, model: str, gpus: tuple[int, ...]) -> Iterator[_Device]:
    topology, node = layout.topology, server.node
    for gpu in gpus:
        others = tuple(one for one in server.demands_on(node, gpu) if one.model != model)
        empty, name = topology.empty_gpu(node, gpu), f"{device_of(topology.nodes[node], gpu)} of node {node}"
        yield _Device(name, empty.memory, empty.memory + empty.headroom, others)
    if not gpus and topology.cpu_only:
        here = ((other.name, one) for other in layout.servers.values() for one in other.demands_on(node))
        others = tuple(one for name, one in here if (name, one.model) != (server.name, model))
        yield _Device(f"the memory of {node}", topology.cpu_memory[node], topology.cpu_total[node], others)
