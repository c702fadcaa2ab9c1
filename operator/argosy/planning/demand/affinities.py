"""Affinities between models: groups that share a server, and groups that are kept apart."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.placement import Level
from argosy.planning.facts import Group

Member = InferenceModel | Ensemble


def together(
    members: Iterable[Member], runs: Mapping[str, Sequence[str]], models: Collection[str]
) -> list[tuple[str, ...]]:
    """Return the models that affinities put on one server, each with those of the members that it names.

    `runs`: the models of each ensemble. Names of none of `models` tie nothing.
    """
    ties = []
    for member in members:
        names = [member.name, *(term.name for term in member.spec.affinity)]
        tied = tuple(dict.fromkeys(one for name in names for one in runs.get(name, (name,)) if one in models))
        ties += [tied] if member.spec.affinity and len(tied) > 1 else []
    return ties


def separated(
    groups: Sequence[Group], members: Iterable[Member], runs: Mapping[str, Sequence[str]]
) -> tuple[Group, ...]:
    """Return the groups with those that they are kept apart from: where one names the other, it counts for both."""
    group_of = {demand.model: group.name for group in groups for demand in group.demands}
    pairs: dict[Level, set[tuple[str, str]]] = {level: set() for level in Level}
    for member in members:
        mine = _groups(member.name, runs, group_of)
        for term in member.spec.anti_affinity:
            both = {(one, other) for one in mine for other in _groups(term.name, runs, group_of) if one != other}
            pairs[term.level] |= both | {(other, one) for one, other in both}
    if not any(pairs.values()):
        return tuple(groups)
    return tuple(
        replace(
            group,
            not_on_server=frozenset(other for one, other in pairs[Level.SERVER] if one == group.name),
            not_on_node=frozenset(other for one, other in pairs[Level.NODE] if one == group.name),
        )
        for group in groups
    )


def _groups(name: str, runs: Mapping[str, Sequence[str]], group_of: Mapping[str, str]) -> set[str]:
    return {group_of[model] for model in runs.get(name, (name,)) if model in group_of}
