"""A server's report, from its ConfigMaps, Deployment and Pods. Pure.

An agent whose state does not fit into its ConfigMap leaves models out. They are assumed to be as last reported, and are
marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.server_objects import AccountUid, Desired, Running, State
from argosy.planning.facts import ServerReport
from argosy_agent.contract import LoadedModel, LoadState, RenderedRepository
from argosy_agent.contract.documents import AgentState


@dataclass(slots=True)
class ServerObjects:
    """The cached details of one server's objects, and its Pods."""

    desired: Desired | None = None
    state: State | None = None
    running: Running | None = None
    account_uid: str = ""
    pods: list[PodView] = field(default_factory=list)

    def name(self, label: str) -> str:
        """Return the server's full name, or its label's value where no ConfigMap has the name."""
        return self.desired.server if self.desired else label

    def add(self, detail: object) -> None:
        """Add the detail of one of the server's objects."""
        match detail:
            case Desired():
                self.desired = detail
            case State():
                self.state = detail
            case Running():
                self.running = detail
            case AccountUid():
                self.account_uid = detail.uid


@dataclass(frozen=True, slots=True)
class CurrentState:
    """An agent's state with its Pod, and the names of the models that it leaves out and that are as last reported."""

    agent: AgentState
    pod: PodView
    unsaid: frozenset[str]


def current_state(server: ServerObjects) -> CurrentState | None:
    """Return the state that the agent of a current Pod reports. The report of a former Pod's agent is not used."""
    agent = server.state.agent if server.state else None
    pod = next((pod for pod in server.pods if agent and pod.uid == agent.pod and not pod.terminating), None)
    if agent is None or pod is None:
        return None
    full, unsaid = _with_last_reported(agent, server.desired.served if server.desired else None)
    return CurrentState(full, pod, unsaid)


def server_report(name: str, server: ServerObjects) -> ServerReport:
    """Return what a server reports, by its full name."""
    state = current_state(server)
    if state is None:
        since = _unscheduled_since(server)
        return ServerReport(name, ready=False, error=_error(server, None), unscheduled_since=since)
    return ServerReport(
        name,
        ready=state.pod.server_ready and state.agent.live,
        models=state.agent.models,
        error=_error(server, state.agent),
        settled=state.agent.settled,
        takes_requests=state.pod.ready,
        routes=state.pod.routes,
        written_at=server.state.written_at if server.state else 0,
        unsaid=state.unsaid,
    )


def _with_last_reported(agent: AgentState, served: RenderedRepository | None) -> tuple[AgentState, frozenset[str]]:
    """Return the state with the models that it leaves out, as last reported, and their names.

    `served`: the models that were ready at the server's last full report; None where that is unknown.
    """
    if not agent.left_out or served is None:
        return agent, frozenset()
    reported = {loaded.model for loaded in agent.models} | {model.declared_name for model in agent.applied.models}
    unsaid = tuple(model for model in served.models if model.declared_name not in reported)
    models = tuple(
        LoadedModel(model.declared_name, v, LoadState.READY) for model in unsaid for v in sorted(model.versions)
    )
    applied = replace(agent.applied, models=(*agent.applied.models, *unsaid))
    names = frozenset(model.declared_name for model in unsaid)
    return replace(agent, models=(*agent.models, *models), applied=applied), names


def _unscheduled_since(server: ServerObjects) -> datetime | None:
    """Return since when all of its Pods are unschedulable; None where one is scheduled."""
    since = [pod.unscheduled_since for pod in server.pods]
    return max((time for time in since if time is not None), default=None) if None not in since else None


def _error(server: ServerObjects, agent: AgentState | None) -> str:
    """Return the first error of: the newest Pod, the Deployment, the agent, the ConfigMaps. Empty without one."""
    staying = sorted((pod for pod in server.pods if not pod.terminating), key=lambda pod: pod.created)
    errors: Sequence[str] = (
        staying[-1].error if staying else "",
        server.running.error if server.running else "",
        agent.problem if agent else "",
        _incomplete(agent) if agent else "",
        server.state.error if server.state else "",
        server.desired.error if server.desired else "",
    )
    return next((error for error in errors if error), "")


def _incomplete(agent: AgentState) -> str:
    """Return why a state is incomplete, as a message; empty where it is complete."""
    if not agent.left_out:
        return ""
    return (
        f"its agent's ConfigMap is full, and says nothing of {agent.left_out} more models; what was last known of them "
        "counts until fewer are there"
    )
