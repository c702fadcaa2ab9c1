"""Nodes that members require and no node can be: labels against those of the pool, and models that share a server."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from argosy.api import Ensemble, InferenceModel, ServingPool
from argosy.api.values.base import Fault
from argosy.planning.required_nodes import requirements_of
from argosy.planning.requirements import NodeRequirements, contradiction
from argosy.planning.variants import RoutedModel, shares_server

Member = InferenceModel | Ensemble


def check_nodes(pool: ServingPool, members: Iterable[Member]) -> Iterator[tuple[Member, Fault]]:
    """Yield labels that the pool's nodes cannot have, and ensembles whose models exclude each other."""
    every = {member.name: member for member in members}
    for member in every.values():
        yield from ((member, fault) for fault in _against_pool(pool, member))
        if isinstance(member, Ensemble) and shares_server(member):
            yield from ((member, fault) for fault in _together(member, every))


def _against_pool(pool: ServingPool, member: Member) -> Iterator[Fault]:
    for key, value in member.spec.node_selector.items():
        of_pool = pool.spec.node_selector.get(key, value)
        if of_pool != value:
            yield Fault(
                f"is {value!r}, and pool {pool.name!r} has nodes with {key}={of_pool} only (its spec.nodeSelector); "
                "change one of them, or use another pool",
                ("spec", "nodeSelector", key),
            )


def _together(ensemble: Ensemble, every: Mapping[str, Member]) -> Iterator[Fault]:
    """Yield the first two of an ensemble and its models that no node suits together."""
    own = NodeRequirements(tuple(sorted(ensemble.spec.node_selector.items())))
    models = [(f"model {model.name!r}", requirements_of(model)) for model in _models(ensemble.name, every)]
    for (one, requires), (other, also) in combinations([("the ensemble", own), *models], 2):
        if why := contradiction(requires, also):
            field = "variants" if isinstance(ensemble, RoutedModel) else "steps"
            yield Fault(
                f"{one} and {other} share a server, and no node has what both require: {why}; change nodeSelector or "
                "footprint.gpuType of one of them",
                ("spec", field),
            )
            return


def _models(name: str, every: Mapping[str, Member]) -> list[InferenceModel]:
    """Return the models that an ensemble runs, those of its inner ensembles too, each once."""
    models: dict[str, InferenceModel] = {}
    todo, seen = [name], set[str]()
    while todo:
        member = every.get(at := todo.pop(0))
        if at in seen or member is None:
            continue
        seen.add(at)
        if isinstance(member, Ensemble):
            todo += [step.model for step in member.spec.steps]
        else:
            models[at] = member
    return list(models.values())
