"""Moves of running replicas, and the steps that each free GPUs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from argosy.api.consolidationstatus import ConsolidationMove
from argosy.planning.facts import CurrentServer, PoolFacts

Gpus = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One replica of a group that goes from one server to another, each with its node. `gpus`: those of each of its
    models where it goes; `bytes`: what is loaded there for it.
    """

    group: str
    source: str
    source_node: str
    target: str
    target_node: str
    gpus: Mapping[str, Gpus]
    bytes: int

    @property
    def described(self) -> ConsolidationMove:
        """The move as a status has it."""
        return ConsolidationMove(
            name=self.group,
            from_server=self.source,
            from_node=self.source_node,
            to_server=self.target,
            to_node=self.target_node,
            bytes=self.bytes,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that leave a server of a node without models, so that the server ends.

    `freed`: by how many GPUs more are free then. `gain`: the same, or the GPUs of the slots that come, where these are
    more.
    """

    server: str
    node: str
    freed: int
    moves: tuple[Move, ...]
    gain: int

    @property
    def bytes(self) -> int:
        """The bytes that are loaded on other servers."""
        return sum(move.bytes for move in self.moves)


def applied(facts: PoolFacts, moves: Iterable[Move]) -> PoolFacts:
    """Return the facts in which the replicas are bound where they go, on servers that there are or new ones."""
    placed = {server.name: dict(server.placed) for server in facts.current}
    needs = {server.name: dict(server.needs) for server in facts.current}
    servers = {server.name: server for server in facts.current}
    for move in moves:
        for model in move.gpus:
            placed[move.source].pop(model, None)
        moved = {model: needs[move.source].pop(model) for model in move.gpus if model in needs[move.source]}
        if move.target not in servers:
            gpus = tuple(sorted({gpu for of_model in move.gpus.values() for gpu in of_model}))
            servers[move.target] = CurrentServer(move.target, move.target_node, gpus)
            placed[move.target], needs[move.target] = {}, {}
        placed[move.target].update(move.gpus)
        needs[move.target].update(moved)
    current = (replace(server, placed=placed[name], needs=needs[name]) for name, server in servers.items())
    return replace(facts, current=tuple(current))


def route(move: ConsolidationMove) -> str:
    """Return from where to where a replica goes, in words: servers with their nodes, as far as the status has them."""
    ends = (("from", move.from_server, move.from_node), ("to", move.to_server, move.to_node))
    return " ".join(f"{word} {server}{f' on node {node}' if node else ''}" for word, server, node in ends)


def carried_out(facts: PoolFacts, step: Step) -> PoolFacts:
    """Return the facts once a step is done: its server has ended, and no new one gets its name."""
    after = applied(facts, step.moves)
    current = tuple(server for server in after.current if server.name != step.server)
    return replace(after, current=current, taken=facts.taken | {step.server})
