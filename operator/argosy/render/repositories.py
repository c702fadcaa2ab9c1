"""A server's plan becomes its model repository."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.fleet.demand.footprint import footprint_of
from argosy.fleet.plan import Placement, ServerPlan
from argosy_runtime.agent.contract import RenderedModel, RenderedRepository, VersionSource, in_load_order

from .alike import Alike
from .configtext import config_text
from .ensemble_config import ensemble_config
from .model_config import Devices, model_config
from .rollover import Exceptions, ServerState, settled_ensemble, versions_beside

MODEL_FILES = {
    "onnxruntime": (".onnx",),
    "python": (".py",),
    "pytorch": (".pt", ".pt2"),
    "tensorrt": (".plan",),
}
"""The suffixes of the one file that a version may consist of, by backend; it is placed as `model<suffix>`."""


def server_repository(
    server: ServerPlan,
    models: Mapping[str, InferenceModel],
    ensembles: Sequence[Ensemble],
    state: ServerState | None = None,
    exceptions: Exceptions | None = None,
) -> RenderedRepository:
    """What `server` should hold next: its plan's models, and the ensembles all of whose steps sit there.

    `models` are by the keys that placements use; `state` is what the server has now, so that what serves is
    kept until its successor is ready. `exceptions` are what is not as planned yet.
    """
    state, but = state or ServerState(RenderedRepository(server.name)), exceptions or Exceptions()
    placed = _placed(server, models, but.withheld)
    pins = _pins(ensembles, {name: model.spec.version for name, (model, _) in placed.items()})
    rendered = [_model(model, placement, server, pins, state) for model, placement in placed.values()]
    for ensemble in ensembles:
        if ensemble.name in pins:
            own = pins[ensemble.name]
            rendered.append(settled_ensemble(ensemble, own, rendered_ensemble(ensemble, own), state))
    return RenderedRepository(server.name, in_load_order(tuple(but.applied(rendered, state.repository))))


def behind(
    server: ServerPlan,
    models: Mapping[str, InferenceModel],
    ensembles: Sequence[Ensemble],
    loaded: Mapping[str, RenderedModel],
) -> set[str]:
    """What of the plan `server` has loaded in another form than the declared one.

    Of a model the declared version counts: its files, and the config but for the versions beside it.
    """
    placed = _placed(server, models)
    pins = _pins(ensembles, {name: model.spec.version for name, (model, _) in placed.items()})
    declared = {
        name: rendered_model(model, local_devices(placement, server), _with_declared(model, loaded[name]))
        for name, (model, placement) in placed.items()
        if name in loaded
    }
    declared |= {each.name: rendered_ensemble(each, pins[each.name]) for each in ensembles if each.name in pins}
    return {name for name, form in declared.items() if name in loaded and not loaded[name].serves_like(form)}


def _with_declared(model: InferenceModel, loaded: RenderedModel) -> dict[int, VersionSource]:
    return {**loaded.versions, model.spec.version: source_of(model)}


def _placed(
    server: ServerPlan, models: Mapping[str, InferenceModel], without: Collection[str] = ()
) -> dict[str, tuple[InferenceModel, Placement]]:
    """The models of a server with their places, by name."""
    here = [each for each in server.placements if each.model not in without]
    return {models[each.model].name: (models[each.model], each) for each in here}


def rendered_model(model: InferenceModel, devices: Devices, versions: Mapping[int, VersionSource]) -> RenderedModel:
    """One model's folder with these versions."""
    text = _model_text(Alike(model), devices, tuple(sorted(versions)))
    return RenderedModel(model.name, text, dict(versions))


@lru_cache(maxsize=4096)
def _model_text(model: Alike[InferenceModel], devices: Devices, versions: tuple[int, ...]) -> str:
    return config_text(model_config(model.resource, devices, versions))


def rendered_ensemble(ensemble: Ensemble, pins: Mapping[str, int]) -> RenderedModel:
    """One ensemble's folder: a config and an empty version."""
    text = _ensemble_text(Alike(ensemble), tuple(sorted(pins.items())))
    return RenderedModel(ensemble.name, text, {ensemble.spec.version: VersionSource()}, dict(pins))


@lru_cache(maxsize=4096)
def _ensemble_text(ensemble: Alike[Ensemble], pins: tuple[tuple[str, int], ...]) -> str:
    return config_text(ensemble_config(ensemble.resource, dict(pins)))


def source_of(model: InferenceModel) -> VersionSource:
    """Where the declared version's files come from, the name of a lone file, and what it is said to take of a GPU."""
    spec, need = model.spec, footprint_of(model)
    name = str(spec.config.get("default_model_filename") or "")
    filename = _file_name(spec.storage_uri, spec.backend, name)
    return VersionSource(spec.storage_uri, spec.digest or "", filename, need.memory, need.whole and not need.assumed)


def local_devices(placement: Placement, server: ServerPlan) -> Devices:
    """The placement's GPUs as the server counts them: CUDA_VISIBLE_DEVICES leaves it its own, from 0."""
    return Devices(tuple(server.gpus.index(gpu) for gpu in placement.gpus), placement.instances)


def _model(
    model: InferenceModel,
    placement: Placement,
    server: ServerPlan,
    pins: Mapping[str, Mapping[str, int]],
    state: ServerState,
) -> RenderedModel:
    wanted = {steps[model.name] for steps in pins.values() if model.name in steps}
    versions = versions_beside(model, source_of(model), wanted, state)
    return rendered_model(model, local_devices(placement, server), versions)


def _pins(ensembles: Sequence[Ensemble], versions: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The step versions of each ensemble that can be here whole, by ensemble and model.

    Ensembles may use ensembles.
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


@lru_cache(maxsize=4096)
def _file_name(uri: str, backend: str, name: str) -> str:
    suffix = PurePosixPath(unquote(urlsplit(uri).path)).suffix
    if suffix not in MODEL_FILES.get(backend, ()):
        return ""
    return name or f"model{suffix}"
