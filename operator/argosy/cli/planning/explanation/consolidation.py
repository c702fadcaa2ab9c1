"""What consolidation would move in a fleet that runs, as `argosy plan` prints it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import gib
from argosy.planning.consolidation.moves import Step, route
from argosy.planning.consolidation.report import summary

Steps = Mapping[PoolKey, Sequence[Step]]


def consolidation_lines(steps: Steps) -> Iterator[str]:
    """Yield a line for each pool in which GPUs would come free, and one for each move."""
    for pool, of_pool in steps.items():
        yield f"{pool}: {summary(of_pool)}"
        for move in (move for step in of_pool for move in step.moves):
            yield f"  {move.group} {route(move.described)} ({gib(move.bytes)})"


def consolidation_document(steps: Steps) -> list[dict[str, Any]]:
    """Return the moves by pool and step as plain values. Memory is in bytes."""
    return [
        {
            "pool": str(pool),
            "server": step.server,
            "node": step.node,
            "gpusFreed": step.freed,
            "bytes": step.bytes,
            "moves": [
                {
                    "group": move.group,
                    "from": move.source,
                    "fromNode": move.source_node,
                    "to": move.target,
                    "toNode": move.target_node,
                    "bytes": move.bytes,
                }
                for move in step.moves
            ],
        }
        for pool, of_pool in steps.items()
        for step in of_pool
    ]
