"""Groups of models that must share a server: those of an ensemble, and of ensembles that share a model with it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.rules.gpus import ON_ONE_GPU
from argosy.api.servingpool import RuntimeName
from argosy.api.values.reuse import Reused
from argosy.planning.adapters import ties
from argosy.planning.demand.affinities import separated
from argosy.planning.demand.affinities import together as tied_together
from argosy.planning.demand.footprint import NO_SIZE, DocumentSize, footprint_of, instances_of, versions_retained
from argosy.planning.demand.members import Members
from argosy.planning.demand.runs import runs_of
from argosy.planning.facts import Demand, Group
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.required_nodes import requirements_of
from argosy.planning.spreading import spread_of
from argosy.planning.variants import shares_server
from argosy_agent.contract.sizes import stepped

Loaded = Mapping[str, Sequence[Collection[int]]]
"""The versions of each model that each server has loaded."""


def groups_of(
    members: Members, loaded: Loaded, has_gpus: bool, runtime: RuntimeName, reused: Reused
) -> tuple[Group, ...]:
    """Return the groups of one pool, by name; models in the order of the steps that use them.

    Variants with replicas of their own are groups of their own. A group has as many replicas as the most demanding of
    its models and ensembles asks for, and is named after its first ensemble, or its only model. An ensemble with a step
    that is not among the members joins nothing. `has_gpus`: whether the pool has GPUs. Of models that wait for their
    engines there is nothing. `runtime`: the program of the pool's servers. `reused`: the groups of the round before.
    """
    models = {name: model for name, model in members.models.items() if name not in members.engines.waiting}
    ensembles = list(members.ensembles.values())
    runs = _members(models, [ensemble for ensemble in ensembles if shares_server(ensemble)])
    sizes = _with_routers(members.sizes, ensembles)
    pool = _Pool(members, _users(ensembles, runs), sizes, loaded, has_gpus, runtime)
    every: list[InferenceModel | Ensemble] = [*members.models.values(), *ensembles]
    tied = [*ties(models.values()), *runs.values(), *tied_together(every, members.runs, models)]
    groups = (
        reused.value(names[0], pool.inputs(names), partial(pool.group, names)) for names in _connected(models, tied)
    )
    return separated(sorted(groups, key=lambda group: group.name), every, members.runs)


@dataclass(frozen=True, slots=True)
class _Pool:
    """What groups are made of. `users`: the ensembles that run each model on its server; `sizes`: what models and
    ensembles take of their server's documents.
    """

    members: Members
    users: Mapping[str, Sequence[Ensemble]]
    sizes: Mapping[str, DocumentSize]
    loaded: Loaded
    has_gpus: bool
    runtime: RuntimeName

    def inputs(self, names: Sequence[str]) -> object:
        """Return all that the group of these models follows from."""
        members, using = self.members, self._using(names)
        of_names = [
            (
                members.models[name],
                self.loaded.get(name),
                members.shapes.get(name),
                members.measured.get(name),
                members.engines.architectures(name),
                self.sizes.get(name),
            )
            for name in names
        ]
        of_users = [(user, self.sizes.get(name)) for name, user in using.items()]
        decided = [name in members.autoscaled for name in (*names, *using)]
        return of_names, of_users, decided, self.has_gpus, self.runtime

    def group(self, names: Sequence[str]) -> Group:
        """Return the group of these models."""
        demands, using = [self._demand(name) for name in names], self._using(names)
        size = sum(self.sizes.get(demand.model, NO_SIZE).with_versions(demand.versions) for demand in demands)
        size += sum(self.sizes.get(name, NO_SIZE).declared for name in using)
        return Group(
            name=min(using, default=names[0]),
            demands=tuple(demands),
            replicas=max(demand.replicas for demand in demands),
            minimum=max(demand.minimum for demand in demands),
            priority=max(demand.priority for demand in demands),
            size=stepped(size),
            spread=spread_of([*(self.members.models[name] for name in names), *using.values()]),
            declared=max(demand.declared for demand in demands),
        )

    def _using(self, names: Sequence[str]) -> dict[str, Ensemble]:
        """Return the ensembles that run some of these models, by name."""
        return {user.name: user for name in names for user in self.users.get(name, ())}

    def _demand(self, name: str) -> Demand:
        members, model, users = self.members, self.members.models[name], self.users.get(name, ())
        every: tuple[InferenceModel | Ensemble, ...] = (model, *users)
        # what a rollout keeps in addition is loaded only where there is memory for it, and places nothing
        declared = (user for user in users if not isinstance(user, PinnedEnsemble))
        steps = (step for user in declared for step in user.spec.steps if step.model == name)
        pins = {step.version for step in steps if step.version is not None}
        versions = versions_retained(model, pins, self.loaded.get(name, ()))
        shape, measured = members.shapes.get(name), members.measured.get(name)
        return Demand(
            model=name,
            version=model.spec.default_version,
            footprint=footprint_of(model, versions, self.has_gpus, shape, self.runtime, measured),
            replicas=max(one.spec.fewest_replicas for one in every),
            instances=instances_of(model),
            versions=versions,
            minimum=max(_needed(one) for one in every),
            priority=max(one.spec.priority for one in every),
            architectures=members.engines.architectures(name),
            requires=requirements_of(model, users),
            declared=max(_declared(one, members.autoscaled) for one in every),
            splittable=model.spec.backend not in ON_ONE_GPU,
        )


def _with_routers(sizes: Mapping[str, DocumentSize], ensembles: Iterable[Ensemble]) -> Mapping[str, DocumentSize]:
    """Return the sizes, those of variants with replicas of their own with what their model takes on each server."""
    apart = [ensemble for ensemble in ensembles if not shares_server(ensemble) and ensemble.name in sizes]
    routers = {step.model: sizes[ensemble.name].declared for ensemble in apart for step in ensemble.spec.steps}
    both = {
        name: replace(sizes[name], declared=sizes[name].declared + routers[name]) for name in routers & sizes.keys()
    }
    return {**sizes, **both} if both else sizes


def _connected(models: Iterable[str], ensembles: Collection[tuple[str, ...]]) -> Iterable[list[str]]:
    """Return the models that ensembles connect, in the order of the steps, then by name."""
    root = {name: name for name in models}
    for names in ensembles:
        for name in names[1:]:
            _join(root, names[0], name)
    connected: dict[str, list[str]] = {}
    for name in dict.fromkeys([*(name for names in ensembles for name in names), *sorted(root)]):
        connected.setdefault(_find(root, name), []).append(name)
    return connected.values()


def _members(models: Iterable[str], ensembles: Sequence[Ensemble]) -> dict[str, tuple[str, ...]]:
    registered = set(models)
    return {name: names for name, names in runs_of(ensembles).items() if names and registered >= set(names)}


def _users(ensembles: Sequence[Ensemble], members: dict[str, tuple[str, ...]]) -> dict[str, list[Ensemble]]:
    """Return the ensembles that run each model."""
    users: dict[str, list[Ensemble]] = {}
    for ensemble in ensembles:
        for name in members.get(ensemble.name, ()):
            users.setdefault(name, []).append(ensemble)
    return users


def _needed(member: InferenceModel | Ensemble) -> int:
    """Return the replicas that a member must have: once scaling has filled in its spec, `minReplicas`."""
    return min(member.spec.least_replicas, member.spec.fewest_replicas)


def _declared(member: InferenceModel | Ensemble, autoscaled: Collection[str]) -> int:
    """Return the replicas that a member's spec sets; 0 where scaling decides."""
    return 0 if member.name in autoscaled else member.spec.replicas or 0


def _find(root: dict[str, str], name: str) -> str:
    while root[name] != name:
        name = root[name]
    return name


def _join(root: dict[str, str], one: str, other: str) -> None:
    first, second = sorted((_find(root, one), _find(root, other)))
    root[second] = first
