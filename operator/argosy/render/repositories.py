"""A server's next step becomes its model repository."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.demand.members import Members
from argosy.planning.migration.next_step import ServerStep
from argosy.planning.migration.revisions import Form
from argosy.planning.plan import ServerPlan
from argosy.render.alike import Alike
from argosy.render.config.configtext import config_text
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, local_devices, model_config
from argosy_agent.contract import RenderedModel, RenderedRepository, in_load_order


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
    steps: Iterable[ServerStep], members: Members, loaded: Iterable[RenderedRepository]
) -> tuple[RenderedServer, ...]:
    """Return a pool's servers. `loaded` is what each has now, of which some stays as it is."""
    texts = {each.server: {model.declared_name: model for model in each.models} for each in loaded}
    return tuple(_server(step, members, texts.get(step.plan.name, {})) for step in steps)


def _server(step: ServerStep, members: Members, loaded: Mapping[str, RenderedModel]) -> RenderedServer:
    placed = {each.model: local_devices(each, step.plan) for each in step.plan.placements}
    models = tuple(
        loaded[name] if name in step.as_loaded else _model(form, members, placed) for name, form in step.forms.items()
    )
    # a name that clients ask for is free for another resource before what had it is gone from here
    by_name = {each.name: each for each in sorted(models, key=lambda each: members.declares(each.declared_name))}
    repository = RenderedRepository(step.plan.name, in_load_order(tuple(by_name.values())))
    return RenderedServer(step.plan, repository, step.routes, step.draining, step.served, step.drain_since)


def _model(form: Form, members: Members, placed: Mapping[str, Devices]) -> RenderedModel:
    names = members.served_names
    names_of_steps = tuple((step, names.get(step, step)) for step in sorted(form.steps))
    text = (
        _ensemble_text(Alike(members.ensembles[form.name]), tuple(sorted(form.steps.items())), names_of_steps)
        if form.steps
        else _model_text(Alike(members.models[form.name]), placed[form.name], tuple(sorted(form.versions)))
    )
    steps = {names.get(step, step): version for step, version in form.steps.items()}
    served = names.get(form.name, form.name)
    resource = form.name if served != form.name else ""
    return RenderedModel(
        served,
        text,
        form.versions,
        steps,
        form.gpus,
        form.reload_key,
        resource,
        form.config_key,
        form.instances,
    )


@lru_cache(maxsize=4096)
def _model_text(model: Alike[InferenceModel], devices: Devices, versions: tuple[int, ...]) -> str:
    return config_text(model_config(model.resource, devices, versions))


@lru_cache(maxsize=4096)
def _ensemble_text(
    ensemble: Alike[Ensemble], pins: tuple[tuple[str, int], ...], served_names: tuple[tuple[str, str], ...]
) -> str:
    return config_text(ensemble_config(ensemble.resource, dict(pins), dict(served_names)))
