"""Progress of moves that were begun: which are under way, whether one failed, and what is taken back then."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from argosy.api.consolidationstatus import ConsolidationMove
from argosy.planning.consolidation.moves import route
from argosy.planning.facts import PoolFacts
from argosy.planning.migration.memory.occupancy import node_gpus
from argosy.planning.migration.observed import Observed
from argosy_agent.contract import LoadState

READY_WITHIN = timedelta(minutes=15)
"""Within which a replica must be reached where it goes: a model of 140 GB loads in a few minutes from most storages."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The moves that are `under_way`; and once one has failed, why, with the moves that are taken back in `back`, and
    those that `failed`. `nodes`: of the servers to which these were to go.
    """

    under_way: tuple[ConsolidationMove, ...] = ()
    failure: str = ""
    back: tuple[ConsolidationMove, ...] = ()
    failed: tuple[ConsolidationMove, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)


def progress_of(
    moving: Sequence[ConsolidationMove], since: datetime, facts: PoolFacts, observed: Observed, now: datetime
) -> Progress:
    """Return how far moves are that were begun at `since`.

    One is done when it is reached where it goes, and not loaded any more where it was. One whose group is not declared
    any more, or that the plan has on another server by now, is not counted.
    """
    models = {group.name: [demand.model for demand in group.demands] for group in facts.groups}
    servers = {server.name: server for server in facts.current}
    ours = [move for move in moving if move.name in models]
    failures = dict[ConsolidationMove, str]()
    for move in ours:
        target = servers.get(move.to_server)
        there = target is not None and all(model in target.placed for model in models[move.name])
        is_waited_for = target is None or (there and not _is_reached(move, models, observed))
        why = _failure(move, models[move.name], target is not None, observed, since, now) if is_waited_for else ""
        if why:
            failures[move] = why
    bound = [move for move in ours if _is_bound(move, models, facts)]
    if failures:
        back = tuple(move for move in bound if not _is_reached(move, models, observed))
        nodes = {move.to_server: servers[move.to_server].node for move in failures if move.to_server in servers}
        return Progress((), next(iter(failures.values())), back, tuple(failures), nodes)
    return Progress(tuple(move for move in bound if not _is_done(move, models, observed)))


def taken_back(facts: PoolFacts, back: Iterable[ConsolidationMove], observed: Observed) -> PoolFacts:
    """Return the facts in which replicas are bound again to the servers that still have them loaded.

    One that is loaded on neither server stays where it goes.
    """
    placed = {server.name: dict(server.placed) for server in facts.current}
    gpus = {server.name: server.gpus for server in facts.current}
    models = {group.name: [demand.model for demand in group.demands] for group in facts.groups}
    for move in back:
        loaded = observed.loaded_on(move.from_server)
        if move.from_server in placed and all(model in loaded for model in models[move.name]):
            for model in models[move.name]:
                placed[move.to_server].pop(model, None)
                placed[move.from_server][model] = node_gpus(loaded[model], gpus[move.from_server])
    return replace(facts, current=tuple(replace(server, placed=placed[server.name]) for server in facts.current))


def _is_bound(move: ConsolidationMove, models: Mapping[str, Sequence[str]], facts: PoolFacts) -> bool:
    placed = {model for server in facts.current if server.name == move.to_server for model in server.placed}
    return placed.issuperset(models[move.name])


def _is_reached(move: ConsolidationMove, models: Mapping[str, Sequence[str]], observed: Observed) -> bool:
    return all(observed.reachable(move.to_server, model) for model in models[move.name])


def _is_done(move: ConsolidationMove, models: Mapping[str, Sequence[str]], observed: Observed) -> bool:
    former = observed.loaded_on(move.from_server)
    return _is_reached(move, models, observed) and former.keys().isdisjoint(models[move.name])


def _failure(
    move: ConsolidationMove, models: Sequence[str], has_server: bool, observed: Observed, since: datetime, now: datetime
) -> str:
    """Return why a move has failed, of which the target is not reached; empty while it may still come."""
    what = f"{move.name} {route(move)}"
    if not has_server:
        return f"{what}: the server that it goes to is gone"
    reported = (one for model in models for one in observed.on(model).get(move.to_server, ()))
    broken = next((one for one in reported if one.state is LoadState.UNAVAILABLE and one.reason), None)
    if broken is not None:
        return f"{what}: {broken.reason}"
    if now >= since + READY_WITHIN:
        return f"{what}: it is not reached there after {READY_WITHIN.seconds // 60} minutes"
    return ""
