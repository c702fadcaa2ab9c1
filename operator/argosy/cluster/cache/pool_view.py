"""What is known of one pool's servers, put together from its objects. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.builds.build_objects import BuildPod
from argosy.cluster.cache.builds.build_view import BuildView, build_views
from argosy.cluster.cache.indexer import Owned, PoolLabel
from argosy.cluster.cache.left_out import trouble, with_last_reported
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.server_objects import AccountUid, Desired, Held, Running, State
from argosy.planning.facts import CurrentServer, ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.render.names import label
from argosy.render.workloads import NO_ACCOUNT, Account
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.documents import AgentState

_SHORTENED = re.compile(r".{52}-[0-9a-f]{10}")


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool as it stands.

    `repositories`: what each server last loaded; `served`: what it had ready when it was last heard of, whatever became
    of its Pod; `drain_since`: from when each model or ensemble that drains is not routed to; `templates`: by server,
    the hash of its Pod; `builds`: the engines' builds, by their requests' names; `activators`: the activator's Pods;
    `activator_stuck`: why it makes none; `held`: by resource name the requests that they hold now, for a model or an
    ensemble that no server has ready; `accounts`: by server, what is known of its own service account.
    """

    current: tuple[CurrentServer, ...] = ()
    reports: tuple[ServerReport, ...] = ()
    repositories: tuple[RenderedRepository, ...] = ()
    served: tuple[RenderedRepository, ...] = ()
    pods: tuple[PodView, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    drain_since: Mapping[Binding, datetime] = field(default_factory=dict)
    builds: Mapping[str, BuildView] = field(default_factory=dict)
    activators: tuple[PodView, ...] = ()
    activator_stuck: str = ""
    held: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)

    @property
    def activator_ready(self) -> bool:
        """Whether requests for what no server has would be held."""
        return any(pod.ready and not pod.terminating for pod in self.activators)

    @property
    def activator_trouble(self) -> str:
        """Why they would not be; empty where they would."""
        if self.activator_ready:
            return ""
        why = next((pod.trouble for pod in self.activators if pod.trouble), self.activator_stuck)
        return f"no Pod of its activator is ready: {why}" if why else "no Pod of its activator is ready"


@dataclass(slots=True)
class _Server:
    desired: Desired | None = None
    state: State | None = None
    running: Running | None = None
    account_uid: str = ""
    pods: list[PodView] = field(default_factory=list)

    def name(self, label: str) -> str:
        return self.desired.server if self.desired else label


def pool_view(
    objects: Iterable[Owned],
    pods: Iterable[PodView],
    build_pods: Iterable[BuildPod] = (),
    activators: Iterable[PodView] = (),
) -> PoolView:
    """Return what a pool's ConfigMaps, Deployments, Jobs and Pods say together.

    Objects that are being deleted say nothing.
    """
    standing, holders = [owned for owned in objects if not owned.terminating], tuple(activators)
    named = _named_servers(standing, pods)
    states = [(name, _present(server)) for name, server in named]
    desired = [(name, server.desired) for name, server in named if server.desired is not None]
    return PoolView(
        current=tuple(each.current for _, each in desired if each.current is not None),
        reports=tuple(_report(name, server) for name, server in named if server.desired or server.running),
        repositories=tuple(replace(state.applied, server=name) for name, (state, _, _) in states if state is not None),
        served=tuple(each.served for _, each in desired if each.served is not None),
        pods=tuple(replace(pod, server=name) for name, server in named for pod in server.pods),
        drain_since={(name, model): at for name, each in desired for model, at in each.drain_since.items()},
        templates={name: server.running.template for name, server in named if server.running},
        builds=build_views((owned.detail for owned in standing), build_pods),
        activators=holders,
        activator_stuck=_stuck(standing),
        accounts={
            name: (server.running.account if server.running else NO_ACCOUNT).seen(server.account_uid)
            for name, server in named
        },
        held=_held((owned.detail for owned in standing), holders),
    )


def _named_servers(standing: Iterable[Owned], pods: Iterable[PodView]) -> list[tuple[str, _Server]]:
    """Each server with its name in full, in the order of their labels."""
    servers: dict[str, _Server] = {}
    for owned in standing:
        if owned.server:
            _take(servers.setdefault(owned.server, _Server()), owned.detail)
    for pod in pods:
        servers.setdefault(pod.server, _Server()).pods.append(pod)
    return [(server.name(label), server) for label, server in sorted(servers.items())]


def pool_label(key: PoolKey) -> PoolLabel:
    """Return what the objects of a pool, by its key, are told by."""
    return key.namespace, label(key.name)


def pool_name(label: str, names: Iterable[str]) -> str | None:
    """Return the pool whose label has this value; None where that is only part of a name, and none of `names` is it."""
    return next(iter(names), None) if _SHORTENED.fullmatch(label) else label


def _take(server: _Server, detail: object) -> None:
    match detail:
        case Desired():
            server.desired = detail
        case State():
            server.state = detail
        case Running():
            server.running = detail
        case AccountUid():
            server.account_uid = detail.uid


def _stuck(standing: Iterable[Owned]) -> str:
    """Why the activator's Deployment, the only one that is no server's, makes no Pod."""
    return next(
        (owned.detail.trouble for owned in standing if not owned.server and isinstance(owned.detail, Running)), ""
    )


def _held(details: Iterable[object], pods: Iterable[PodView]) -> dict[str, int]:
    """Who waits at these Pods, those that end among them; what a Pod said that is gone holds no more."""
    there = {pod.uid for pod in pods}
    found: dict[str, int] = {}
    for said in (said for detail in details if isinstance(detail, Held) for said in detail.said if said.pod in there):
        for name, count in said.queued.items():
            found[name] = found.get(name, 0) + count
    return found


def _present(server: _Server) -> tuple[AgentState | None, PodView | None, frozenset[str]]:
    """What the agent of a Pod that is there says, and that Pod: what a former Pod's agent said is of no use. With it
    what is last known of models that it leaves out, and their names.
    """
    said = server.state.said if server.state else None
    pod = next((pod for pod in server.pods if said is not None and pod.uid == said.pod and not pod.terminating), None)
    if said is None or pod is None:
        return None, None, frozenset()
    whole, unsaid = with_last_reported(said, server.desired.served if server.desired else None)
    return whole, pod, unsaid


def _report(name: str, server: _Server) -> ServerReport:
    said, pod, unsaid = _present(server)
    if said is None or pod is None:
        since = _unscheduled_since(server)
        return ServerReport(name, ready=False, error=_trouble(server, None), unscheduled_since=since)
    return ServerReport(
        name,
        ready=pod.server_ready and said.live,
        models=said.models,
        error=_trouble(server, said),
        settled=said.settled,
        takes_requests=pod.ready,
        routes=pod.routes,
        written_at=server.state.written_at if server.state else 0,
        unsaid=unsaid,
    )


def _unscheduled_since(server: _Server) -> datetime | None:
    """Since when no node takes any of its Pods; None where one has a node, or ends on one."""
    since = [pod.unscheduled_since for pod in server.pods]
    return max((each for each in since if each is not None), default=None) if None not in since else None


def _trouble(server: _Server, said: AgentState | None) -> str:
    """The first reason that is known: the newest Pod's, the Deployment's, the agent's, the ConfigMaps'."""
    staying = sorted((pod for pod in server.pods if not pod.terminating), key=lambda pod: pod.created)
    reasons: Sequence[str] = (
        staying[-1].trouble if staying else "",
        server.running.trouble if server.running else "",
        said.problem if said else "",
        trouble(said) if said else "",
        server.state.trouble if server.state else "",
        server.desired.trouble if server.desired else "",
    )
    return next((reason for reason in reasons if reason), "")
