"""The configurations that versions have of their own, in place of their model's: `argosy.pbtxt` in their folders.

The bundled server reads them, so that revisions of a model that differ in more than their files, and revisions of an
ensemble that run other versions or differ in their graph, are served next to each other.
"""

from dataclasses import replace

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.api.values.derived import cached_with_spec
from argosy.planning.demand.members import Members
from argosy.planning.migration.revisions import ModelRevision
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, config_text, model_config
from argosy_agent.contract import RenderedModel, VersionConfig, VersionSource


def rendered_versions(
    revision: ModelRevision, members: Members, devices: Devices, loaded: RenderedModel | None
) -> dict[int, VersionSource]:
    """Return the versions of a revision with the texts of their own configurations, of those that have one. `devices`:
    where a model sits, and on which server.

    A version that is `loaded` and is no longer declared keeps the text that it was loaded with. One of which no text is
    known has the model's configuration, as have all on NVIDIA's server, which knows no others.
    """
    if devices.runtime is RuntimeName.TRITON:
        return {version: replace(source, own=None) for version, source in revision.versions.items()}
    return {
        version: replace(source, own=_rendered(version, source.own, revision, members, devices, loaded))
        if source.own is not None
        else source
        for version, source in revision.versions.items()
    }


def _rendered(
    version: int,
    own: VersionConfig,
    revision: ModelRevision,
    members: Members,
    devices: Devices,
    loaded: RenderedModel | None,
) -> VersionConfig | None:
    rollout, names = members.rollouts.get(revision.name), members.served_names
    steps = {names.get(step, step): at for step, at in own.steps.items()}
    if not own.steps:
        model = members.spec_of(revision.name, version)
        if model is None and own.config_key == revision.config_key:
            model = members.models.get(revision.name)
        if model is not None:
            return replace(own, text=_model_text(model, devices, version))
    spec = rollout.specs.get(version) if rollout is not None else None
    if isinstance(spec, Ensemble):
        served_names = tuple((step, names.get(step, step)) for step in sorted(own.steps))
        text = _ensemble_text(spec, tuple(sorted(own.steps.items())), served_names)
        return replace(own, text=text, steps=steps)
    if loaded is not None and version in loaded.versions:
        return replace(own, text=loaded.config_of(version).text, steps=steps)
    return None


@cached_with_spec
def _model_text(model: InferenceModel, devices: Devices, version: int) -> str:
    config = model_config(model, devices, (version,))
    config.ClearField("version_policy")
    return config_text(config)


@cached_with_spec
def _ensemble_text(
    ensemble: Ensemble, pins: tuple[tuple[str, int], ...], served_names: tuple[tuple[str, str], ...]
) -> str:
    config = ensemble_config(ensemble, dict(pins), dict(served_names))
    config.ClearField("version_policy")
    return config_text(config)
