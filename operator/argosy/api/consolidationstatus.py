"""What a pool's status says of consolidation: what would come free, what moves, and what was moved."""

from pydantic import Field

from argosy.api.statusparts import StatusPart
from argosy.api.values.base import Int
from argosy.api.values.quantity import Quantity


class ConsolidationMove(StatusPart):
    """One replica that goes to another server."""

    name: str = Field(description="The model, or the models of an ensemble.")
    from_server: str = Field(description="The server that it leaves.")
    from_node: str = Field(default="", description="The node of that server.")
    to_server: str = Field(description="The server that it goes to.")
    to_node: str = Field(default="", description="The node of that server, which may not be there yet.")
    bytes: Quantity = Field(default=0, description="Its memory, which is loaded there.")


class ConsolidationRecord(StatusPart):
    """What was moved at one time."""

    time: str = Field(description="When the moves began, RFC 3339.")
    moves: Int = Field(default=0, ge=0, description="Replicas.")
    bytes: Quantity = Field(default=0, description="Their memory.")
    replicas: tuple[ConsolidationMove, ...] = Field(
        default=(), description="Which they are, the last 500 of all. They are not moved again within the hour."
    )


class FailedMove(StatusPart):
    """A model, or the models of an ensemble, of which a move failed. It stays where it is for a time."""

    name: str = Field(description="The model, or the models of an ensemble.")
    revision: str = Field(default="", description="Its revision. With another one it may move again at once.")
    to_node: str = Field(default="", description="The node that it did not come to.")
    failures: Int = Field(default=1, ge=1, description="How many of its moves have failed, one after another.")
    until: str = Field(default="", description="Until when it stays, RFC 3339: twice as long after each failure.")


class ConsolidationStatus(StatusPart):
    """The consolidation of a pool. The operator goes on from it after a restart."""

    message: str = Field(default="", description="What would come free and what that costs, or what it waits for.")
    gpus: Int = Field(default=0, ge=0, description="GPUs that would come free by all of moves.")
    bytes: Quantity = Field(default=0, description="Memory of the replicas that would be moved.")
    moves: tuple[ConsolidationMove, ...] = Field(
        default=(), description="What Auto would move, in this order; the first fifty."
    )
    remaining_moves: Int = Field(default=0, ge=0, description="The number of moves that are not listed.")
    moving: tuple[ConsolidationMove, ...] = Field(default=(), description="What is being moved.")
    moving_since: str = Field(default="", description="When these moves began, RFC 3339.")
    stable_since: str = Field(default="", description="Since when the pool is at rest, RFC 3339.")
    next_search: str = Field(default="", description="When the next search is due, RFC 3339.")
    last_hour: tuple[ConsolidationRecord, ...] = Field(
        default=(), description="What was moved within the last hour, which consolidationBudget limits."
    )
    paused_until: str = Field(default="", description="Until when nothing is moved after a move that failed, RFC 3339.")
    failure: str = Field(default="", description="The move that failed, and how.")
    failed: tuple[FailedMove, ...] = Field(
        default=(), description="What stays where it is because its move failed; the last 100."
    )
