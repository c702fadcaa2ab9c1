"""The revisions of an ensemble that a server has loaded together, each whole: with the versions of all its steps.

A revision is loaded once all its steps are ready on the server, next to the one that serves. The versions of its steps
stay as long as a revision runs them, and an inner ensemble keeps the revisions that outer ones run.
"""

from collections.abc import Collection, Iterable, Mapping

from argosy.api.ensemble import Ensemble
from argosy.planning.demand.members import Members
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision, ReloadKeys
from argosy.planning.pinned import PinnedEnsemble
from argosy_agent.contract import VersionConfig, VersionSource

Pins = Mapping[str, Mapping[str, int]]
"""The version of each step's model, by ensemble."""


def versions_run(
    ensembles: Iterable[Ensemble], pins: Pins, members: Members, loaded: Mapping[str, ModelRevision]
) -> dict[str, set[int]]:
    """Return the versions of each model or ensemble that others run: what is declared, kept by a rollout, or loaded."""
    runs = {step for revision in loaded.values() for step in revision.runs}
    for ensemble in ensembles:
        runs |= pins.get(ensemble.name, {}).items()
        runs |= {step for proven in members.proven_revisions(ensemble.name).values() for step in proven.pins.items()}
    versions: dict[str, set[int]] = {}
    for name, version in runs:
        versions.setdefault(name, set()).add(version)
    return versions


def declared_ensemble(ensemble: Ensemble, pins: Mapping[str, int], keys: ReloadKeys) -> ModelRevision:
    """Return the revision of an ensemble that is acted upon, as if nothing had been loaded before."""
    named = keys.of_ensemble(ensemble, pins)
    source = VersionSource()
    if isinstance(ensemble, PinnedEnsemble):
        source = VersionSource(own=VersionConfig("", named.config, named.reload, dict(pins)))
    return ModelRevision(ensemble.name, {ensemble.spec.version: source}, (), named.reload, dict(pins), named.config)


def ensemble_target(
    declared: ModelRevision,
    run_by_others: Collection[int],
    members: Members,
    server: str,
    observed: Observed,
    keys: ReloadKeys,
) -> ModelRevision:
    """Return what a server should have of an ensemble next.

    That is the `declared` revision once all its steps are ready; until then what serves. In addition, the revisions
    that a rollout keeps, once all their steps are ready, and loaded ones that other ensembles run.
    """
    before = observed.loaded_on(server).get(declared.name)
    if before is None:
        return declared
    if not (before.serves(declared) or all(serves(observed, server, *step) for step in declared.runs)):
        return before
    proven = members.proven_revisions(declared.name)
    further: dict[int, VersionSource] = {}
    for version in sorted((proven.keys() | set(run_by_others)) - declared.versions.keys()):
        if version in before.versions:
            further[version] = _with_own(before, version)
        elif version in proven and all(serves(observed, server, *step) for step in proven[version].pins.items()):
            further[version] = next(
                iter(declared_ensemble(proven[version], proven[version].pins, keys).versions.values())
            )
    if not further:
        return declared
    return ModelRevision(
        declared.name,
        {**further, **declared.versions},
        (),
        declared.reload_key,
        declared.steps,
        declared.config_key,
    )


def serves(observed: Observed, server: str, name: str, version: int) -> bool:
    """Return whether the server answers requests with this version now."""
    loaded = observed.loaded_on(server).get(name)
    return loaded is not None and version in loaded.versions and observed.has_ready(server, name, version)


def _with_own(before: ModelRevision, version: int) -> VersionSource:
    """Return a loaded version that stays, with the configuration that it was loaded with."""
    source = before.versions[version]
    if source.own is not None:
        return source
    return VersionSource(own=VersionConfig("", before.config_key, before.reload_key, before.steps))
