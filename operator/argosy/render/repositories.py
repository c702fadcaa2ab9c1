"""A server's next step becomes its model repository."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.api.values.derived import cached_with_spec
from argosy.api.values.reuse import Reused
from argosy.planning.adapters import AdapterModel
from argosy.planning.demand.members import Members
from argosy.planning.migration.next_step import ServerStep
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.plan import ServerPlan
from argosy.planning.variants import RoutedModel
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, config_text, local_devices, model_config, specific
from argosy.render.config.traffic_config import set_traffic, traffic_of, with_traffic
from argosy.render.config.version_texts import version_texts
from argosy.render.version_configs import rendered_versions
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource, in_load_order


@dataclass(frozen=True, slots=True)
class RenderedServer:
    """One server with the repository that it should hold next; the rest as in `ServerStep`."""

    plan: ServerPlan
    repository: RenderedRepository
    routes: frozenset[str] = frozenset()
    draining: bool = False
    served: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    drain_since: Mapping[str, datetime] = field(default_factory=dict)


def rendered_servers(
    steps: Iterable[ServerStep],
    members: Members,
    loaded: Iterable[RenderedRepository],
    runtime: RuntimeName = RuntimeName.ARGOSY,
    reused: Reused | None = None,
) -> tuple[RenderedServer, ...]:
    """Return a pool's servers, of `runtime`, with their repositories. `loaded`: former and present ones, parts of which
    are retained; of two of one server the last counts. `reused`: the servers of the round before.
    """
    repositories: dict[str, list[RenderedRepository]] = {}
    for repository in loaded:
        repositories.setdefault(repository.server, []).append(repository)
    return tuple(
        _reused(step, members, repositories.get(step.plan.name, []), runtime, reused or Reused()) for step in steps
    )


def _reused(
    step: ServerStep, members: Members, loaded: list[RenderedRepository], runtime: RuntimeName, reused: Reused
) -> RenderedServer:
    """Return a server as it was rendered in the round before, where its step and the members on it are equal."""
    names = dict.fromkeys(step.revisions)
    for revision in step.revisions.values():
        names |= dict.fromkeys(revision.step_names) if revision.steps else {}
    of_names = [
        (
            name,
            members.models.get(name),
            members.ensembles.get(name),
            members.rollouts.get(name),
            members.served_names.get(name),
            name in members.broken,
        )
        for name in names
    ]

    def rendered() -> RenderedServer:
        texts = {model.declared_name: model for repository in loaded for model in repository.models}
        return _server(step, members.of_names(names), texts, runtime)

    return reused.value(step.plan.name, (step, loaded, runtime, of_names), rendered)


def _server(
    step: ServerStep, members: Members, loaded: Mapping[str, RenderedModel], runtime: RuntimeName
) -> RenderedServer:
    placed = {placement.model: local_devices(placement, step.plan, runtime) for placement in step.plan.placements}
    traffic = {name: traffic_of(members.rollouts.get(name), runtime) for name in step.revisions}
    models = tuple(
        _as_loaded(loaded[name], traffic[name])
        if name in step.as_loaded
        else _model(revision, members, placed.get(name, Devices(runtime=runtime)), traffic[name], loaded.get(name))
        for name, revision in step.revisions.items()
    )
    # a name that clients ask for is free for another resource before what had it is gone from here
    by_name = {model.name: model for model in sorted(models, key=lambda model: members.declares(model.declared_name))}
    repository = RenderedRepository(step.plan.name, in_load_order(tuple(by_name.values())))
    return RenderedServer(step.plan, repository, step.routes, step.draining, step.served, step.drain_since)


def divided(repository: RenderedRepository, traffic: Mapping[str, str]) -> RenderedRepository:
    """Return a loaded repository whose members divide requests by these texts, by their declared names."""
    models = (_as_loaded(model, traffic.get(model.declared_name, "")) for model in repository.models)
    return replace(repository, models=tuple(models))


def _as_loaded(model: RenderedModel, traffic: str) -> RenderedModel:
    """Return what is loaded, with the division of requests as it is decided now: that waits for nothing."""
    return replace(model, config_text=with_traffic(model.config_text, traffic)) if traffic else model


def _model(
    revision: ModelRevision, members: Members, devices: Devices, traffic: str, loaded: RenderedModel | None
) -> RenderedModel:
    names = members.served_names
    sources = rendered_versions(revision, members, devices, loaded)
    steps = {names.get(step, step): version for step, version in revision.steps.items()}
    served = names.get(revision.name, revision.name)
    resource = revision.name if served != revision.name else ""
    return RenderedModel(
        served,
        _folder_text(revision, sources, members, devices, traffic),
        sources,
        steps,
        revision.gpus,
        revision.reload_key,
        resource,
        revision.config_key,
        revision.instances,
        {} if revision.steps else version_texts(members.models[revision.name], devices),
        isinstance(members.ensembles.get(revision.name), RoutedModel) and bool(revision.steps),
        _base(members, revision.name),
    )


def _folder_text(
    revision: ModelRevision,
    sources: Mapping[int, VersionSource],
    members: Members,
    devices: Devices,
    traffic: str,
) -> str:
    """Return the text of config.pbtxt: where each version has its own, only which there are, and their traffic."""
    names, versions = members.served_names, tuple(sorted(revision.versions))
    if versions and all(source.own is not None for source in sources.values()):
        return _deciding_text(names.get(revision.name, revision.name), versions, traffic)
    if revision.steps:
        names_of_steps = tuple((step, names.get(step, step)) for step in sorted(revision.steps))
        pins = tuple(sorted(revision.steps.items()))
        return _ensemble_text(members.ensembles[revision.name], pins, names_of_steps, versions, traffic)
    return _model_text(members.models[revision.name], devices, versions, traffic)


def _base(members: Members, name: str) -> str:
    """Return what clients call the base model of an adapter; empty for any other model."""
    model = members.models.get(name)
    return model.base_served_name if isinstance(model, AdapterModel) else ""


@lru_cache(maxsize=4096)
def _deciding_text(name: str, versions: tuple[int, ...], traffic: str) -> str:
    config = ModelConfig(name=name, version_policy=specific(versions))
    set_traffic(config, traffic)
    return config_text(config)


@cached_with_spec
def _model_text(model: InferenceModel, devices: Devices, versions: tuple[int, ...], traffic: str) -> str:
    config = model_config(model, devices, versions)
    set_traffic(config, traffic)
    return config_text(config)


@cached_with_spec
def _ensemble_text(
    ensemble: Ensemble,
    pins: tuple[tuple[str, int], ...],
    served_names: tuple[tuple[str, str], ...],
    versions: tuple[int, ...],
    traffic: str,
) -> str:
    config = ensemble_config(ensemble, dict(pins), dict(served_names))
    config.version_policy.CopyFrom(specific(versions))
    set_traffic(config, traffic)
    return config_text(config)
