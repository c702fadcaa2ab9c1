"""Instances by which the steps of ensembles overlap, in what a plan leaves free.

A step with one instance executes one batch after another, and requests wait for it while the rest of its GPU is idle.
A step that declares no instances has two, so that the batch of one request is prepared while that of another computes.
They count towards no decision of the plan: where there is no memory for them, or no compute, a step has one instance,
and what comes later takes their place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.modelformat import LANGUAGE_BACKENDS
from argosy.api.values.reuse import Reused
from argosy.planning.adapters import AdapterModel
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.demand.members import Members
from argosy.planning.facts import Footprint, PoolFacts
from argosy.planning.packing.capacity import FreeCapacity, capacity_left
from argosy.planning.plan import Placement, PoolPlan, ServerPlan
from argosy.planning.variants import RoutedModel, VariantModel
from argosy_agent.contract import RenderedModel, RenderedRepository

INSTANCES: Final = 2
"""Of a step: enough to overlap. More of them is what scaling decides, by what it measures."""
_ALL_CORES: Final = frozenset({"pytorch"})
"""Backends whose one instance on a CPU computes on all of its cores, so that a second one only slows it down."""


@dataclass(frozen=True, slots=True)
class _Server:
    """All that the instances on a server follow from. `steps`: models that may have further ones, in their order, each
    with its loaded versions; `spare`: what its GPUs have while nothing is there; `repository`: what it serves.
    """

    plan: ServerPlan
    steps: tuple[tuple[InferenceModel, int, MeasuredMemory | None], ...]
    spare: Mapping[int, FreeCapacity]
    repository: RenderedRepository | None

    def overlapping(self) -> ServerPlan:
        """Return the plan of the server with the instances that it has room for."""
        instances = self._instances()
        spare, is_busy = self._left(), self._is_busy(instances)
        placed = {placement.model: placement for placement in self.plan.placements}
        raised: dict[str, Placement] = {}
        for model, versions, measured in self.steps:
            if is_busy and instances.get(model.name, 0) < INSTANCES:
                continue  # what leaves has the memory until then
            placement = placed[model.name]
            more = _raised(placement, model, versions, measured)
            if more is not None and _take(spare, placement, more):
                raised[model.name] = more
        if not raised:
            return self.plan
        return replace(self.plan, placements=tuple(raised.get(one.model, one) for one in self.plan.placements))

    def _instances(self) -> dict[str, int]:
        models = self.repository.models if self.repository is not None else ()
        return {model.declared_name: model.instances for model in models}

    def _left(self) -> dict[int, FreeCapacity]:
        """Return what each GPU has left, but for those on which a candidate lacks memory."""
        left = dict(self.spare)
        for placement in self.plan.placements:
            for gpu in left.keys() & placement.gpus:
                left[gpu] = left[gpu].less(placement.need)
        lacking = {gpu for placement in self.plan.placements if placement.unreserved for gpu in placement.gpus}
        return {gpu: capacity for gpu, capacity in left.items() if gpu not in lacking}

    def _is_busy(self, instances: Mapping[str, int]) -> bool:
        """Return whether something is loaded that is to leave: a model, or a version that another follows."""
        needs = {
            one.model: (one.memory + one.surge) * (instances.get(one.model) or 1) // one.instances
            for one in self.plan.placements
        }
        return any(
            one.declared_name not in needs or _loaded_bytes(one) > needs[one.declared_name]
            for one in (self.repository.models if self.repository is not None else ())
            if not one.is_ensemble
        )


def _loaded_bytes(model: RenderedModel) -> int:
    return sum(source.memory for source in model.versions.values())


def with_overlap(
    plan: PoolPlan,
    facts: PoolFacts,
    members: Members,
    running: Iterable[RenderedRepository],
    reused: Reused | None = None,
) -> PoolPlan:
    """Return the plan of a pool with the instances of steps that have room for them. `running`: the repositories that
    its servers have; `reused`: the servers of the round before.

    The smallest steps of ensembles of the highest priority come first, so that as many as can be overlap.
    """
    steps = _steps(facts, members)
    if not steps:
        return plan
    values, order = reused or Reused(), {name: at for at, name in enumerate(steps)}
    repositories = {repository.server: repository for repository in running}
    spare = capacity_left(facts.nodes, facts.headroom, ())

    def of_server(server: ServerPlan) -> ServerPlan:
        names = sorted((one.model for one in server.placements if one.model in order), key=order.__getitem__)
        if not names:
            return server
        inputs = _Server(
            server,
            tuple((members.models[name], steps[name], members.measured.get(name)) for name in names),
            {gpu: spare[server.node, gpu] for gpu in server.gpus if (server.node, gpu) in spare},
            repositories.get(server.name),
        )
        return values.value(server.name, inputs, inputs.overlapping)

    servers = tuple(map(of_server, plan.servers))
    return replace(plan, servers=servers) if servers != plan.servers else plan


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


def _raised(
    placement: Placement, model: InferenceModel, versions: int, measured: MeasuredMemory | None
) -> Placement | None:
    """Return the placement with its instances; None where what they take is not known, or of no use."""
    if not placement.gpus:
        return replace(placement, instances=INSTANCES) if model.spec.backend not in _ALL_CORES else None
    declared = model.spec.footprint.gpu_memory if model.spec.footprint is not None else None
    if placement.shares > 1 or not (declared or measured is not None):
        return None
    need = footprint_of(model, versions, measured=measured, instances=INSTANCES)
    surge = placement.surge * INSTANCES
    return replace(placement, instances=INSTANCES, memory=need.memory, compute=need.compute, surge=surge)


def _take(spare: dict[int, FreeCapacity], placement: Placement, more: Placement) -> bool:
    """Take what a placement needs in addition; return whether there is as much on each of its GPUs."""
    need, has = more.need, placement.need
    addition = Footprint(need.memory - has.memory, need.compute - has.compute)
    fits = all(gpu in spare and spare[gpu].takes(addition) for gpu in placement.gpus)
    if fits:
        spare.update({gpu: spare[gpu].less(addition) for gpu in placement.gpus})
    return fits
