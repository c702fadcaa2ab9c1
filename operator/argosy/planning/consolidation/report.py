"""What a status says of steps: the moves, the GPUs that come free, and the bytes."""

from collections.abc import Sequence
from typing import Any

from argosy.api.values.quantity import format_duration
from argosy.planning.amounts import gib, listed, quantity
from argosy.planning.consolidation.moves import Step

_MOVES = 50
"""Moves that a status lists."""
NOTHING: dict[str, Any] = {
    "message": "no GPU would come free by moving replicas",
    "gpus": 0,
    "bytes": 0,
    "moves": (),
    "remaining_moves": 0,
}


def recommended(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the fields of a status that tell of steps."""
    moves = [move.described for step in steps for move in step.moves]
    return {
        "gpus": sum(step.freed for step in steps),
        "bytes": sum(step.bytes for step in steps),
        "moves": tuple(moves[:_MOVES]),
        "remaining_moves": max(0, len(moves) - _MOVES),
    }


def recommendation(steps: Sequence[Step], then: str) -> str:
    """Return what would come free and what that costs, and what follows."""
    return f"{summary(steps)}; {then}"


def summary(steps: Sequence[Step]) -> str:
    """Return what would come free and what that costs."""
    moves, size = sum(len(step.moves) for step in steps), sum(step.bytes for step in steps)
    servers = listed((f"{step.server} on {step.node}" for step in steps), separator=", ")
    cost = f"{quantity(moves, 'replica')} ({gib(size)}) left {servers}"
    freed, larger = sum(step.freed for step in steps), sum(not step.freed for step in steps)
    gains = [quantity(freed, "GPU") + " would come free"] if freed else []
    gains += [f"the free GPUs of {quantity(larger, 'node')} would make larger slots"] if larger else []
    return f"{' and '.join(gains)} if {cost}"


def waiting(milliseconds: int) -> str:
    """Return what a pool waits for that has just come to rest."""
    return f"a search is due once the pool was at rest for {format_duration(milliseconds)}"
