"""What is observed: the state of servers, and objects that could not be applied."""

from dataclasses import dataclass
from datetime import datetime

from argosy_agent.contract import LoadedModel


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The observed state of one server; `error` is the reason why it does not run.

    `settled`: since it was started, every desired model was ready or failed once. `routes`: names in its Pod's labels;
    requests for them arrive once the Pod is Ready (`takes_requests`), and running ones continue when it is not.
    `written_at`: the time of the report by the agent's clock, 0 if unknown; `expired`: the report is too old to be
    trusted. `unsaid`: models for which the report had no space; their state here is the last one known.
    `unscheduled_since`: since when no node accepts its Pod.
    """

    name: str
    ready: bool
    models: tuple[LoadedModel, ...] = ()
    url: str = ""
    error: str = ""
    settled: bool = False
    takes_requests: bool = False
    routes: frozenset[str] = frozenset()
    grpc_address: str = ""
    written_at: int = 0
    expired: bool = False
    unsaid: frozenset[str] = frozenset()
    unscheduled_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object (`Service default/embedder`) that could not be applied for a resource, given by its identity.

    `message` says why, and the way out.
    """

    resource: str
    object: str
    message: str
