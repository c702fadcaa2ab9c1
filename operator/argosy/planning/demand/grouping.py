"""Groups of models that must share a server: those of an ensemble, and of ensembles that share a model with it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.api import Ensemble, InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.api.values.reuse import Reused
from argosy.planning.adapters import ties
from argosy.planning.demand.affinities import separated
from argosy.planning.demand.affinities import together as tied_together
from argosy.planning.demand.footprint import NO_SIZE, DocumentSize, footprint_of, instances_of, versions_retained
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.demand.model_files import ServedEngines
from argosy.planning.facts import Demand, Footprint, Group
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.required_nodes import requirements_of
from argosy.planning.spreading import spread_of
from argosy.planning.variants import shares_server
from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.sizes import stepped

Loaded = Mapping[str, Sequence[Collection[int]]]
"""The versions of each model that each server has loaded."""


def groups_of(
    models: Sequence[InferenceModel],
    ensembles: Sequence[Ensemble],
    loaded: Loaded | None = None,
    has_gpus: bool = True,
    shapes: Mapping[str, ModelShape] | None = None,
    engines: ServedEngines | None = None,
    sizes: Mapping[str, DocumentSize] | None = None,
    runtime: RuntimeName = RuntimeName.ARGOSY,
    measured: Mapping[str, MeasuredMemory] | None = None,
    reused: Reused | None = None,
    autoscaled: Collection[str] = (),
) -> tuple[Group, ...]:
    """Return the groups of one pool, by name; models in the order of the steps that use them.

    Variants with replicas of their own are groups of their own. A group has as many replicas as the most demanding of
    its models and ensembles asks for, and is named after its first ensemble, or its only model. An ensemble with a step
    that is not among `models` and `ensembles` joins nothing. `has_gpus`: whether the pool has GPUs. `shapes`: the
    models' that are known, by name. Of models that wait for their `engines` there is nothing. `sizes`: what models and
    ensembles take of their server's documents, by name. `runtime`: the program of the pool's servers. `measured`: what
    models were measured to use of a GPU, by name. `reused`: the groups of the round before. `autoscaled`: names of
    those whose replicas scaling decides.
    """
    built = engines or ServedEngines()
    by_name = {model.name: model for model in models if model.name not in built.waiting}
    together = [ensemble for ensemble in ensembles if shares_server(ensemble)]
    members = _members(by_name, together)
    users = _users(together, members)
    versions, shape_of, used = loaded or {}, shapes or {}, measured or {}

    def footprint(model: InferenceModel, versions: int) -> Footprint:
        name = model.name
        return footprint_of(model, versions, has_gpus, shape_of.get(name), runtime, used.get(name))

    size_of = _with_routers(sizes or {}, ensembles)
    every: list[InferenceModel | Ensemble] = [*models, *ensembles]
    runs = runs_of(ensembles)
    tied = [*ties(by_name.values()), *members.values(), *tied_together(every, runs, by_name)]
    values = reused or Reused()

    def group(names: Sequence[str]) -> Group:
        using = {user.name: user for name in names for user in users.get(name, ())}
        of_names = [
            (by_name[name], versions.get(name), shape_of.get(name), used.get(name), built.architectures(name))
            for name in names
        ]
        of_users = [(user, size_of.get(name)) for name, user in using.items()]
        decided = [name in autoscaled for name in (*names, *using)]
        sizes_of_names = [size_of.get(name) for name in names]

        def derived() -> Group:
            demands = [
                _demand(by_name[name], users.get(name, ()), versions.get(name, ()), footprint, built, autoscaled)
                for name in names
            ]
            spread = spread_of([*(by_name[name] for name in names), *(u for n in names for u in users.get(n, ()))])
            return replace(_group(demands, users, size_of), spread=spread)

        return values.value(names[0], (of_names, of_users, decided, sizes_of_names, has_gpus, runtime), derived)

    groups = map(group, _connected(by_name, tied))
    return separated(sorted(groups, key=lambda group: group.name), every, runs)


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


def models_of(ensemble: str, ensembles: Sequence[Ensemble]) -> tuple[str, ...]:
    """Return the models that an ensemble runs, those of its inner ensembles in their place, each once, in step
    order.
    """
    return _run_by(ensemble, _steps(ensembles))


def runs_of(ensembles: Iterable[Ensemble]) -> dict[str, tuple[str, ...]]:
    """Return the models that each ensemble runs, as `models_of` gives them."""
    steps = _steps(ensembles)
    return {name: _run_by(name, steps) for name in sorted(steps)}


def _steps(ensembles: Iterable[Ensemble]) -> dict[str, list[str]]:
    return {ensemble.name: [step.model for step in ensemble.spec.steps] for ensemble in ensembles}


def _run_by(ensemble: str, steps: dict[str, list[str]]) -> tuple[str, ...]:
    models: dict[str, None] = {}
    _collect(ensemble, steps, models, frozenset())
    return tuple(models)


def _collect(name: str, steps: dict[str, list[str]], models: dict[str, None], above: frozenset[str]) -> None:
    if name in above:
        return
    if name not in steps:
        models.setdefault(name)
        return
    for step in steps[name]:
        _collect(step, steps, models, above | {name})


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


def _group(demands: Sequence[Demand], users: dict[str, list[Ensemble]], sizes: Mapping[str, DocumentSize]) -> Group:
    ensembles = {user.name for demand in demands for user in users.get(demand.model, ())}
    name = min(ensembles, default=demands[0].model)
    minimum, priority = max(demand.minimum for demand in demands), max(demand.priority for demand in demands)
    size = sum(sizes.get(demand.model, NO_SIZE).with_versions(demand.versions) for demand in demands)
    size += sum(sizes.get(name, NO_SIZE).declared for name in ensembles)
    replicas, declared = (max(counts) for counts in zip(*((d.replicas, d.declared) for d in demands), strict=True))
    return Group(name, tuple(demands), replicas, minimum, priority, stepped(size), declared=declared)


def _demand(
    model: InferenceModel,
    users: Sequence[Ensemble],
    loaded: Sequence[Collection[int]],
    footprint: Callable[[InferenceModel, int], Footprint],
    built: ServedEngines,
    autoscaled: Collection[str],
) -> Demand:
    # what a rollout keeps in addition is loaded only where there is memory for it, and places nothing
    declared = (user for user in users if not isinstance(user, PinnedEnsemble))
    steps = (step for user in declared for step in user.spec.steps if step.model == model.name)
    versions = versions_retained(model, {step.version for step in steps if step.version is not None}, loaded)
    return Demand(
        model=model.name,
        version=model.spec.default_version,
        footprint=footprint(model, versions),
        replicas=_replicas(model, users),
        instances=instances_of(model),
        versions=versions,
        minimum=max([_needed(model), *(_needed(user) for user in users)]),
        priority=max([model.spec.priority, *(user.spec.priority for user in users)]),
        architectures=built.architectures(model.name),
        requires=requirements_of(model, users),
        declared=max([_declared(model, autoscaled), *(_declared(user, autoscaled) for user in users)]),
    )


def _replicas(model: InferenceModel, users: Sequence[Ensemble]) -> int:
    return max([model.spec.fewest_replicas, *(user.spec.fewest_replicas for user in users)])


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
