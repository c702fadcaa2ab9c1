"""The versions that a server has loaded together during a rollout.

A new version is loaded next to the serving ones. These are unloaded once it is ready there and no ensemble uses them.
An ensemble changes to the new versions of all its steps at once, when all of them are ready on its server.
"""

from collections.abc import Collection, Mapping, Sequence

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.modelformat import OPENED_BY_PATH
from argosy.api.values.versions import retained
from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import Binding, PlannedBindings
from argosy.planning.migration.coexisting.configs import with_own_configs
from argosy.planning.migration.coexisting.ensembles import declared_ensemble, ensemble_target, serves, versions_run
from argosy.planning.migration.coexisting.replica_shares import version_alone
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision, ReloadKeys
from argosy.planning.plan import Placement, ServerPlan
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.variants import shares_server
from argosy_agent.contract import VersionSource


def target_revisions(
    server: ServerPlan,
    members: Members,
    bindings: PlannedBindings,
    observed: Observed,
    keys: ReloadKeys,
    without: Collection[str] = (),
    declared_only: Collection[str] = (),
) -> dict[str, ModelRevision]:
    """Return the next revisions on `server`, by name: its planned models, and ensembles with all their steps there.

    Serving versions stay until their successors are ready. `without`: models that are not loaded yet; `declared_only`:
    models whose former versions are not restored.
    """
    placements = [placement for placement in server.placements if placement.model not in without]
    ensembles = _ensembles(server, members, bindings)
    pins = pins_of(
        ensembles, {placement.model: members.models[placement.model].spec.default_version for placement in placements}
    )
    former = observed.without_former(declared_only) if declared_only else observed
    run = versions_run(ensembles, pins, members, observed.loaded_on(server.name))
    targets = {
        placement.model: _model(
            members,
            placement,
            server,
            run.get(placement.model, ()),
            former,
            keys,
            version_alone(placement.model, server.name, members, bindings, observed),
            alone=placement.model in declared_only,
        )
        for placement in placements
    }
    for ensemble in ensembles:
        if ensemble.name in pins:
            declared, others = declared_ensemble(ensemble, pins[ensemble.name], keys), run.get(ensemble.name, ())
            targets[ensemble.name] = ensemble_target(declared, others, members, server.name, former, keys)
    return targets | undivided(server.name, targets, members, observed)


def undivided(server: str, names: Collection[str], members: Members, observed: Observed) -> dict[str, ModelRevision]:
    """Return those of these models and ensembles that stay on the server as loaded, until requests are divided there
    as their rollouts desire.
    """
    loaded = observed.loaded_on(server)
    waiting = (name for name in names if name in members.rollouts and server in members.rollouts[name].undivided)
    return {name: loaded[name] for name in waiting if name in loaded}


def outdated_bindings(
    servers: Sequence[ServerPlan],
    members: Members,
    bindings: PlannedBindings,
    observed: Observed,
    keys: ReloadKeys,
) -> frozenset[Binding]:
    """Return where something of the plan is loaded in another revision than the declared one.

    Of a model the declared versions count, whatever is loaded in addition. Of members that scale, instances and
    batching are decided and not declared, and change in place.
    """
    return frozenset(
        (server.name, name)
        for server in servers
        for name, declared in _declared(server, members, bindings, keys).items()
        if (loaded := observed.loaded_on(server.name).get(name)) is not None
        and not loaded.serves(declared)
        and not (name in members.scaled and loaded.serves_but_for_amounts(declared))
    )


def pins_of(ensembles: Sequence[Ensemble], versions: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the step versions of each ensemble that can be complete on the server, by ensemble and model.

    `versions`: those of the models on the server. Ensembles may contain ensembles. Of variants with replicas of their
    own those count that are on the server.
    """
    there = dict(versions)
    pins: dict[str, dict[str, int]] = {}
    waiting = list(ensembles)
    while complete := [ensemble for ensemble in waiting if _is_complete(ensemble, there)]:
        for ensemble in complete:
            pins[ensemble.name] = {
                step.model: step.version or there[step.model] for step in ensemble.spec.steps if step.model in there
            }
            there[ensemble.name] = ensemble.spec.version
        waiting = [ensemble for ensemble in waiting if ensemble.name not in pins]
    return pins


def _is_complete(ensemble: Ensemble, there: Collection[str]) -> bool:
    enough = all if shares_server(ensemble) else any
    return enough(step.model in there for step in ensemble.spec.steps)


def _ensembles(server: ServerPlan, members: Members, bindings: PlannedBindings) -> list[Ensemble]:
    return [members.ensembles[name] for name in sorted(bindings.names[server.name] & members.ensembles.keys())]


def _declared(
    server: ServerPlan, members: Members, bindings: PlannedBindings, keys: ReloadKeys
) -> dict[str, ModelRevision]:
    """Return the declared revisions, as if nothing had been loaded before."""
    pins = pins_of(
        ensembles := _ensembles(server, members, bindings),
        {placement.model: members.models[placement.model].spec.default_version for placement in server.placements},
    )
    revisions = {
        placement.model: _placed(
            members.models[placement.model], placement, server, members.sources(placement, server.node), keys
        )
        for placement in server.placements
    }
    return revisions | {
        ensemble.name: declared_ensemble(ensemble, pins[ensemble.name], keys)
        for ensemble in ensembles
        if ensemble.name in pins
    }


def _placed(
    model: InferenceModel,
    placement: Placement,
    server: ServerPlan,
    versions: Mapping[int, VersionSource],
    keys: ReloadKeys,
) -> ModelRevision:
    named = keys.of_model(model, placement, server)
    return ModelRevision(
        model.name,
        versions,
        tuple(server.gpus.index(gpu) for gpu in placement.gpus),
        named.reload,
        config_key=named.config,
        instances=placement.instances,
    )


def _model(
    members: Members,
    placement: Placement,
    server: ServerPlan,
    pinned: Collection[int],
    observed: Observed,
    keys: ReloadKeys,
    only: int | None = None,
    *,
    alone: bool,
) -> ModelRevision:
    """Return the next revision of a placed model. `alone`: there is no room for any version but the declared ones;
    `only`: the one version that the server is to have.
    """
    model, declared = members.models[placement.model], members.sources(placement, server.node)
    rollout = members.rollouts.get(model.name) if not alone else None
    tried = {} if rollout is None else members.candidate_sources(placement, server.node)
    if only is not None:
        versions = {**declared, **members.candidate_sources(placement, server.node)}
        versions = {version: source for version, source in versions.items() if version == only}
    else:
        others = _versions(model, declared, server.name, pinned, observed, placement.instances, rollout, tried)
        versions = {**others, **declared}
    target = _placed(model, placement, server, versions, keys)
    if not keys.versions_differ:
        return target
    specs = {version: members.spec_of(model.name, version) for version in target.versions}
    specified = {
        version: target.keys if spec is model else keys.of_model(spec, placement, server)
        for version, spec in specs.items()
        if spec is not None
    }
    before = observed.loaded_on(server.name).get(model.name) or observed.served.get(server.name, {}).get(model.name)
    return with_own_configs(target, before, specified)


def _versions(
    model: InferenceModel,
    declared: Mapping[int, VersionSource],
    server: str,
    pinned: Collection[int],
    observed: Observed,
    instances: int,
    rollout: MemberRollout | None = None,
    tried: Mapping[int, VersionSource] | None = None,
) -> dict[int, VersionSource]:
    """Return the versions of a model that a server should have, with their memory for the number of instances.

    These are the declared versions and those still in use. No version is unloaded while a declared one is in a crash
    loop on any server. `pinned`: versions that ensembles run, now or next. A new Pod loads the versions that its server
    served before. If no server serves the model, it also loads those of other servers, except for engines, which may
    be built for other GPUs. One that is opened by a path, which all versions share, is never loaded next to another.
    In a `rollout`, these are also the versions of its revisions, `tried` the candidate's; none of a revision that
    failed is loaded again.
    """
    spec, name = model.spec, model.name
    loaded = observed.loaded_on(server)
    own = loaded[name].sources(instances) if name in loaded else {}
    failed = rollout.failed if rollout is not None else frozenset()
    others = {version: source for version, source in _former(model, server, observed).items() if version not in failed}
    available = {**others, **own, **(tried or {}), **declared}
    retained_versions = (
        retained(declared, spec.version_policy, available) if rollout is None else rollout.retained(declared, available)
    )
    retained_versions |= set(pinned) & set(available)
    untried = not all(serves(observed, server, name, version) for version in declared)
    if untried or observed.crashes(name, declared):
        served = observed.served.get(server, {}).get(name)
        retained_versions |= set(own) if name in loaded else set(served.versions if served else ()) & set(available)
        retained_versions |= set(available) if observed.unserved(name) else set()
    return {version: available[version] for version in sorted(retained_versions)}


def _former(model: InferenceModel, server: str, observed: Observed) -> Mapping[int, VersionSource]:
    """Return the former versions of a model that a server may load in addition to those that it has."""
    if model.spec.backend in OPENED_BY_PATH:
        return {}
    if model.spec.engine is None:
        return observed.sources.get(model.name, {})
    return _served_on(server, model.name, observed)


def _served_on(server: str, name: str, observed: Observed) -> Mapping[int, VersionSource]:
    """Return the versions of a model that were ready at a server's last report."""
    served = observed.served.get(server, {}).get(name)
    return served.versions if served is not None else {}
