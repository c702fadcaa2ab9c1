"""Affinities between models: groups that share a server, and groups that are kept apart."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

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
    for member in (one for one in members if one.spec.affinity):
        names = [member.name, *(term.name for term in member.spec.affinity)]
        tied = tuple(dict.fromkeys(one for name in names for one in runs.get(name, (name,)) if one in models))
        ties += [tied] if len(tied) > 1 else []
    return ties


def separated(
    groups: Sequence[Group], members: Iterable[Member], runs: Mapping[str, Sequence[str]]
) -> tuple[Group, ...]:
    """Return the groups with those that they are kept apart from: where one names the other, it counts for both."""
    naming = [member for member in members if member.spec.anti_affinity]
    group_of = {demand.model: group.name for group in groups for demand in group.demands} if naming else {}
    apart: dict[Level, dict[str, set[str]]] = {level: {} for level in Level}
    for member in naming:
        mine = _groups(member.name, runs, group_of)
        for term in member.spec.anti_affinity:
            for one, other in product(mine, _groups(term.name, runs, group_of)):
                if one != other:
                    apart[term.level].setdefault(one, set()).add(other)
                    apart[term.level].setdefault(other, set()).add(one)
    on_server, on_node = apart[Level.SERVER], apart[Level.NODE]
    return tuple(
        replace(
            group,
            not_on_server=frozenset(on_server.get(group.name, ())),
            not_on_node=frozenset(on_node.get(group.name, ())),
        )
        if group.name in on_server or group.name in on_node
        else group
        for group in groups
    )


def _groups(name: str, runs: Mapping[str, Sequence[str]], group_of: Mapping[str, str]) -> set[str]:
    return {group_of[model] for model in runs.get(name, (name,)) if model in group_of}
