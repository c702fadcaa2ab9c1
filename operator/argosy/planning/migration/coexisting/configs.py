"""Configurations of a model's versions: which of them has one of its own, next to others of another spec.

A version is served by the spec that it was released with. The folder's configuration is that of the spec that is acted
upon; a version of another spec has its own. So no version is loaded again because another one comes, is promoted or
leaves: one that was loaded with a configuration of its own keeps it, even if the folder's is the same by now.
"""

from collections.abc import Mapping
from dataclasses import replace

from argosy.planning.migration.revisions import ModelRevision, RevisionKeys
from argosy_agent.contract import VersionConfig


def with_own_configs(
    target: ModelRevision, loaded: ModelRevision | None, specified: Mapping[int, RevisionKeys]
) -> ModelRevision:
    """Return the next revision of a model, each of its versions as its spec configures it.

    `loaded`: what the server has of it, or had before it was replaced. `specified`: the keys of versions by their
    specs; a version of no such spec stays as it is loaded.
    """
    own = {version: _own(target, loaded, version, specified.get(version)) for version in target.versions}
    if all(own[version] is source.own for version, source in target.versions.items()):
        return target
    return replace(target, versions={v: replace(source, own=own[v]) for v, source in target.versions.items()})


def _own(
    target: ModelRevision, loaded: ModelRevision | None, version: int, specified: RevisionKeys | None
) -> VersionConfig | None:
    """Return the configuration that a version has of its own; None where it has the folder's."""
    had = loaded.versions[version].own if loaded is not None and version in loaded.versions else None
    keys = specified or _as_loaded(target, loaded, version)
    if keys is None or (had is None and keys == target.keys):
        return None
    return VersionConfig(config_key=keys.config, reload_key=keys.reload)


def _as_loaded(target: ModelRevision, loaded: ModelRevision | None, version: int) -> RevisionKeys | None:
    """Return the keys of what a version is loaded with, or those of the target where it comes to that in place.

    None where it is not loaded, or on another GPU: then there is only the folder's configuration.
    """
    if loaded is None or version not in loaded.versions or loaded.gpus != target.gpus:
        return None
    keys = loaded.keys_of(version)
    return target.keys if keys.is_like(target.keys) or not any(keys) else keys
