"""Which servers of a model requests go to, where its variants have servers of their own."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from argosy.planning.migration.state import PoolState
from argosy.planning.variants import RoutedModel


@dataclass(frozen=True, slots=True)
class VariantChoice:
    """The variant whose servers requests go to, and the one that is `desired` for the load, by the names of their
    models. `servers`: those that have the chosen one and answer; `others`: those that have the model and not this
    variant.
    """

    variant: str
    desired: str
    servers: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


def variant_choices(state: PoolState, desired: Mapping[str, str]) -> dict[str, VariantChoice]:
    """Return the choice of each model of a pool whose variants have servers of their own, by the model's name.

    `desired`: the variant for the load, where one is known; else it is the first. One that no server answers for gives
    way to the nearest that can answer, of two the one for more requests. If none can, all servers stay.
    """
    routed = (member for member in state.members.ensembles.values() if isinstance(member, RoutedModel))
    return {model.name: _choice(state, model, desired.get(model.name, "")) for model in routed if model.is_separate}


def _choice(state: PoolState, model: RoutedModel, desired: str) -> VariantChoice:
    variants = model.variant_models
    index = variants.index(desired) if desired in variants else 0
    here = _variants_by_server(state, model.name)
    answering = {server for server in here if _answers(state, server, model.name)}
    by_distance = sorted(range(len(variants)), key=lambda other: (abs(other - index), -other))
    for nearest in by_distance:
        servers = frozenset(server for server in answering if variants[nearest] in here[server])
        if servers:
            others = frozenset(server for server in here if variants[nearest] not in here[server])
            return VariantChoice(variants[nearest], variants[index], servers, others)
    return VariantChoice(variants[index], variants[index])


def _variants_by_server(state: PoolState, name: str) -> dict[str, Collection[str]]:
    """Return the variants of a model on each server that has loaded it."""
    loaded = state.observed.loaded
    return {server: revisions[name].step_names for server, revisions in loaded.items() if name in revisions}


def _answers(state: PoolState, server: str, name: str) -> bool:
    report = state.observed.reports.get(server)
    return report is not None and report.takes_requests and state.observed.serves(server, name)
