"""Which versions stand side by side on one server while a new one takes over.

A new version loads beside those that serve; they go when it is ready there and no ensemble runs them any
more. An ensemble moves to new versions of its steps in one step: when all of them are ready beside it.
"""

from collections.abc import Collection, Mapping, Sequence

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.versions import retained
from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import Binding, PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import Form, ReloadKeys
from argosy.planning.plan import Placement, ServerPlan
from argosy_agent.contract import VersionSource


def target_forms(
    server: ServerPlan,
    members: Members,
    bindings: PlannedBindings,
    observed: Observed,
    keys: ReloadKeys,
    without: Collection[str] = (),
    declared_only: Collection[str] = (),
) -> dict[str, Form]:
    """Return what `server` should hold next, by name: its planned models, and the ensembles all of whose steps sit
    there.

    What serves is kept until its successor is ready. `without` are models that are not to be loaded yet,
    `declared_only` those of which no version comes back that served before.
    """
    placements = [each for each in server.placements if each.model not in without]
    ensembles = _ensembles(server, members, bindings)
    pins = pins_of(ensembles, {each.model: members.models[each.model].spec.default_version for each in placements})
    known = observed.without_former(declared_only) if declared_only else observed
    found = {each.model: _model(members, each, server, pins, known, keys) for each in placements}
    for ensemble in ensembles:
        if ensemble.name in pins:
            declared = _ensemble(ensemble, pins[ensemble.name], keys)
            found[ensemble.name] = _settled(declared, server.name, known)
    return found


def outdated_forms(
    servers: Sequence[ServerPlan],
    members: Members,
    bindings: PlannedBindings,
    observed: Observed,
    keys: ReloadKeys,
) -> frozenset[Binding]:
    """Return where something of the plan is loaded in another form than the declared one.

    Of a model the declared versions count, whatever stands beside them. Of members that scale, instances
    and batching are decided and not declared, and change in place.
    """
    return frozenset(
        (server.name, name)
        for server in servers
        for name, declared in _declared(server, members, bindings, keys).items()
        if (loaded := observed.held(server.name).get(name)) is not None
        and not loaded.serves(declared)
        and not (name in members.scaled and loaded.serves_but_for_amounts(declared))
    )


def pins_of(ensembles: Sequence[Ensemble], versions: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the step versions of each ensemble that can be there whole, by ensemble and model.

    `versions` are those of the models that are there. Ensembles may use ensembles.
    """
    there = dict(versions)
    pins: dict[str, dict[str, int]] = {}
    waiting = list(ensembles)
    while whole := [each for each in waiting if all(step.model in there for step in each.spec.steps)]:
        for ensemble in whole:
            pins[ensemble.name] = {step.model: step.version or there[step.model] for step in ensemble.spec.steps}
            there[ensemble.name] = ensemble.spec.version
        waiting = [each for each in waiting if each.name not in pins]
    return pins


def _ensembles(server: ServerPlan, members: Members, bindings: PlannedBindings) -> list[Ensemble]:
    return [members.ensembles[name] for name in sorted(bindings.names[server.name] & members.ensembles.keys())]


def _declared(server: ServerPlan, members: Members, bindings: PlannedBindings, keys: ReloadKeys) -> dict[str, Form]:
    """The forms that are declared, as if nothing had been there before."""
    pins = pins_of(
        ensembles := _ensembles(server, members, bindings),
        {each.model: members.models[each.model].spec.default_version for each in server.placements},
    )
    found = {
        each.model: _placed(members.models[each.model], each, server, members.sources(each, server.node), keys)
        for each in server.placements
    }
    return found | {each.name: _ensemble(each, pins[each.name], keys) for each in ensembles if each.name in pins}


def _placed(
    model: InferenceModel,
    placement: Placement,
    server: ServerPlan,
    versions: Mapping[int, VersionSource],
    keys: ReloadKeys,
) -> Form:
    found = keys.of_model(model, placement, server)
    return Form(
        model.name,
        versions,
        tuple(server.gpus.index(gpu) for gpu in placement.gpus),
        found.reload,
        config_key=found.config,
        instances=placement.instances,
    )


def _model(
    members: Members,
    placement: Placement,
    server: ServerPlan,
    pins: Mapping[str, Mapping[str, int]],
    observed: Observed,
    keys: ReloadKeys,
) -> Form:
    model, declared = members.models[placement.model], members.sources(placement, server.node)
    wanted = {steps[model.name] for steps in pins.values() if model.name in steps}
    beside = _versions(model, declared, server.name, wanted, observed, placement.instances)
    return _placed(model, placement, server, {**beside, **declared}, keys)


def _ensemble(ensemble: Ensemble, pins: Mapping[str, int], keys: ReloadKeys) -> Form:
    found = keys.of_ensemble(ensemble, pins)
    versions = {ensemble.spec.version: VersionSource()}
    return Form(ensemble.name, versions, (), found.reload, dict(pins), found.config)


def _versions(
    model: InferenceModel,
    declared: Mapping[int, VersionSource],
    server: str,
    wanted: Collection[int],
    observed: Observed,
    instances: int,
) -> dict[int, VersionSource]:
    """The versions that a server should have of a model, each with so many instances: those declared, and those that
    are still needed. None goes while a declared one is in a crash loop on any server.

    `wanted` are versions that the ensembles to come name. A server that has nothing of the model, for its Pod is a new
    one, is to have again what it served; where nobody serves the model, also what another one did, unless these are
    engines: another server's may be for other GPUs.
    """
    spec, name = model.spec, model.name
    held = observed.held(server)
    own = held[name].sources(instances) if name in held else {}
    others = observed.known.get(name, {}) if spec.engine is None else _served_on(server, name, observed)
    known = {**others, **own, **declared}
    kept = retained(declared, spec.version_policy, known)
    kept |= (set(wanted) | {each.steps[name] for each in held.values() if name in each.steps}) & set(known)
    untried = not all(_serves(observed, server, name, version) for version in declared)
    if untried or observed.crashes(name, declared):
        served = observed.served.get(server, {}).get(name)
        kept |= set(own) if name in held else set(served.versions if served else ()) & set(known)
        kept |= set(known) if observed.unserved(name) else set()
    return {version: known[version] for version in sorted(kept)}


def _served_on(server: str, name: str, observed: Observed) -> Mapping[int, VersionSource]:
    """What a server had ready of a model when it was last heard of."""
    served = observed.served.get(server, {}).get(name)
    return served.versions if served is not None else {}


def _settled(declared: Form, server: str, observed: Observed) -> Form:
    """The declared form of an ensemble where all its steps are ready on the server; until then the one that serves."""
    before = observed.held(server).get(declared.name)
    if before is None or all(_serves(observed, server, step, version) for step, version in declared.steps.items()):
        return declared
    return before


def _serves(observed: Observed, server: str, name: str, version: int) -> bool:
    """Whether requests to the server are answered by this version now."""
    loaded = observed.held(server).get(name)
    return loaded is not None and version in loaded.versions and observed.has_ready(server, name, version)
