"""Instances by which the steps of ensembles overlap, in what a plan leaves free.

A step with one instance executes one batch after another, and requests wait for it while the rest of its GPU is idle.
A step that declares no instances has two, so that the batch of one request is prepared while that of another computes.
They count towards no decision of the plan: where there is no memory for them, or no compute, a step has one instance,
and what comes later takes their place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.modelformat import LANGUAGE_BACKENDS
from argosy.planning.adapters import AdapterModel
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.members import Members
from argosy.planning.demand.surges import LoadedVersions
from argosy.planning.facts import Device, Footprint, PoolFacts
from argosy.planning.packing.capacity import FreeCapacity, capacity_left
from argosy.planning.plan import Placement, PoolPlan, ServerPlan
from argosy.planning.variants import RoutedModel, VariantModel
from argosy_agent.contract import RenderedRepository

INSTANCES: Final = 2
"""Of a step: enough to overlap. More of them is what scaling decides, by what it measures."""
_ALL_CORES: Final = frozenset({"pytorch"})
"""Backends whose one instance on a CPU computes on all of its cores, so that a second one only slows it down."""
_ServerModel = tuple[str, str]
"""The names of a server and of a model on it."""


@dataclass(frozen=True, slots=True)
class Running:
    """What the servers of a pool have: the repositories that they serve, and the bytes of each loaded version."""

    repositories: Iterable[RenderedRepository] = ()
    loaded: LoadedVersions = field(default_factory=dict)

    def instances(self) -> dict[_ServerModel, int]:
        """Return the instances of each model on each server."""
        return {
            (repository.server, model.declared_name): model.instances
            for repository in self.repositories
            for model in repository.models
        }


def with_overlap(plan: PoolPlan, facts: PoolFacts, members: Members, running: Running) -> PoolPlan:
    """Return the plan of a pool with the instances of steps that have room for them.

    The smallest steps of ensembles of the highest priority come first, so that as many as can be overlap.
    """
    steps = _steps(facts, members)
    placed = _placed(plan, steps)
    if not placed:
        return plan
    spare, instances = _spare(plan, facts), running.instances()
    busy = _busy(plan, running, instances)
    raised: dict[_ServerModel, Placement] = {}
    for name, versions in steps.items():
        for server, placement in placed.get(name, ()):
            here = server.name, name
            if server.name in busy and instances.get(here, 0) < INSTANCES:
                continue  # what leaves has the memory until then
            more = _raised(placement, members, versions)
            if more is not None and _take(spare, server, placement, more):
                raised[here] = more
    return replace(plan, servers=tuple(_server(server, raised) for server in plan.servers)) if raised else plan


def _server(server: ServerPlan, raised: Mapping[_ServerModel, Placement]) -> ServerPlan:
    if not any((server.name, placement.model) in raised for placement in server.placements):
        return server
    placements = (raised.get((server.name, placement.model), placement) for placement in server.placements)
    return replace(server, placements=tuple(placements))


def _steps(facts: PoolFacts, members: Members) -> dict[str, int]:
    """Return the loaded versions of each step's model that may have further instances, in their order."""
    demands = {demand.model: demand for group in facts.groups for demand in group.demands}
    ensembles = [one for one in members.ensembles.values() if not isinstance(one, RoutedModel)]
    streamed = {name for one in ensembles if _streams(one, members) for name in members.models_of(one.name)}
    steps: dict[str, int] = {}
    for ensemble in sorted(ensembles, key=lambda one: (-one.spec.priority, one.name)):
        models = {name for name in members.models_of(ensemble.name) if name in demands and _may(name, members)}
        for name in sorted(models - streamed, key=lambda name: (demands[name].footprint.memory, name)):
            steps.setdefault(name, demands[name].versions)
    return steps


def _streams(ensemble: Ensemble, members: Members) -> bool:
    """Return whether a step answers in pieces: NVIDIA's server passes those on as instances behind it finish."""
    models = (members.models[name] for name in members.models_of(ensemble.name) if name in members.models)
    return any(model.spec.backend in LANGUAGE_BACKENDS or _is_decoupled(model) for model in models)


def _is_decoupled(model: InferenceModel) -> bool:
    policy = model.spec.config.get("model_transaction_policy")
    return isinstance(policy, Mapping) and bool(policy.get("decoupled"))


def _may(name: str, members: Members) -> bool:
    """Return whether nothing else decides on the instances of a model, and a second one is of use."""
    model = members.models[name]
    spec = model.spec
    decided = spec.instances is not None or spec.instance_groups or name in members.scaled
    alone = spec.sequence is not None or spec.backend in LANGUAGE_BACKENDS or spec.gpus > 1
    return not (decided or alone or isinstance(model, VariantModel | AdapterModel))


def _placed(plan: PoolPlan, steps: Mapping[str, int]) -> dict[str, list[tuple[ServerPlan, Placement]]]:
    placed: dict[str, list[tuple[ServerPlan, Placement]]] = {}
    for server in plan.servers if steps else ():
        for placement in server.placements:
            if placement.model in steps:
                placed.setdefault(placement.model, []).append((server, placement))
    return placed


def _spare(plan: PoolPlan, facts: PoolFacts) -> dict[Device, FreeCapacity]:
    """Return what each GPU has left, but for those on which a candidate lacks memory."""
    lacking = {
        (server.node, gpu)
        for server in plan.servers
        for placement in server.placements
        if placement.unreserved
        for gpu in placement.gpus
    }
    left = capacity_left(facts.nodes, facts.headroom, plan.taken)
    return {device: capacity for device, capacity in left.items() if device not in lacking}


def _busy(plan: PoolPlan, running: Running, instances: Mapping[_ServerModel, int]) -> set[str]:
    """Return the servers on which something is loaded that is to leave: a model, or a version that another follows."""
    needs = {
        (server.name, one.model): (one.memory + one.surge)
        * (instances.get((server.name, one.model)) or 1)
        // one.instances
        for server in plan.servers
        for one in server.placements
    }
    return {
        server
        for server, models in running.loaded.items()
        for model, versions in models.items()
        if (server, model) not in needs or sum(versions.values()) > needs[server, model]
    }


def _raised(placement: Placement, members: Members, versions: int) -> Placement | None:
    """Return the placement with its instances; None where what they take is not known, or of no use."""
    model = members.models[placement.model]
    if not placement.gpus:
        return replace(placement, instances=INSTANCES) if model.spec.backend not in _ALL_CORES else None
    if placement.shares > 1 or not _has_memory(model, members):
        return None
    measured = members.measured.get(model.name)
    need = footprint_of(model, versions, measured=measured, instances=INSTANCES)
    surge = placement.surge * INSTANCES
    return replace(placement, instances=INSTANCES, memory=need.memory, compute=need.compute, surge=surge)


def _has_memory(model: InferenceModel, members: Members) -> bool:
    """Return whether the memory of an instance is declared or measured."""
    declared = model.spec.footprint.gpu_memory if model.spec.footprint is not None else None
    return bool(declared) or model.name in members.measured


def _take(spare: dict[Device, FreeCapacity], server: ServerPlan, placement: Placement, more: Placement) -> bool:
    """Take what a placement needs in addition; return whether there is as much on each of its GPUs."""
    need, has = more.need, placement.need
    addition = Footprint(need.memory - has.memory, need.compute - has.compute)
    devices = [(server.node, gpu) for gpu in placement.gpus]
    fits = all(device in spare and spare[device].takes(addition) for device in devices)
    if fits:
        spare.update({device: spare[device].less(addition) for device in devices})
    return fits
