"""The state of one pool's servers, builds and activator, from its objects. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.builds.build_objects import BuildPod
from argosy.cluster.cache.builds.build_view import BuildView, build_views
from argosy.cluster.cache.indexer import Owned, PoolLabel
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.server_objects import ActivatorState, Running
from argosy.cluster.cache.server_report import ServerObjects, current_state, server_report
from argosy.planning.facts import CurrentServer, ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.render.names import label
from argosy.render.workloads import NO_ACCOUNT, Account
from argosy_agent.contract import RenderedRepository

_SHORTENED = re.compile(r".{52}-[0-9a-f]{10}")


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool's state in the cluster.

    `repositories`: what each server last loaded; `served`: what it had ready at its last report, also where its Pod is
    gone; `drain_since`: since when a draining model or ensemble is not routed to; `templates`: the hash of the Pod
    template, by server; `builds`: by their requests' names; `activators`: the activator's Pods; `deployment_error`: why
    the activator's Deployment has no Pod; `queued`: the requests that wait at these Pods, by resource name; `accounts`:
    service accounts, by server.
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
    deployment_error: str = ""
    queued: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)

    @property
    def activator_ready(self) -> bool:
        """Whether requests for models that no server has ready are queued at an activator."""
        return any(pod.ready and not pod.terminating for pod in self.activators)

    @property
    def activator_error(self) -> str:
        """Why no activator is ready; empty where one is."""
        if self.activator_ready:
            return ""
        why = next((pod.error for pod in self.activators if pod.error), self.deployment_error)
        return f"no Pod of its activator is ready: {why}" if why else "no Pod of its activator is ready"


def pool_view(
    objects: Iterable[Owned],
    pods: Iterable[PodView],
    build_pods: Iterable[BuildPod] = (),
    activators: Iterable[PodView] = (),
) -> PoolView:
    """Return a pool's state from its ConfigMaps, Deployments, Jobs and Pods.

    Terminating objects are ignored.
    """
    existing, activator_pods = [owned for owned in objects if not owned.terminating], tuple(activators)
    servers = _servers(existing, pods)
    states = [(name, state) for name, server in servers if (state := current_state(server)) is not None]
    desired = [(name, server.desired) for name, server in servers if server.desired is not None]
    return PoolView(
        current=tuple(item.current for _, item in desired if item.current is not None),
        reports=tuple(server_report(name, server) for name, server in servers if server.desired or server.running),
        repositories=tuple(replace(state.agent.applied, server=name) for name, state in states),
        served=tuple(item.served for _, item in desired if item.served is not None),
        pods=tuple(replace(pod, server=name) for name, server in servers for pod in server.pods),
        drain_since={(name, model): at for name, item in desired for model, at in item.drain_since.items()},
        templates={name: server.running.template for name, server in servers if server.running},
        builds=build_views((owned.detail for owned in existing), build_pods),
        activators=activator_pods,
        deployment_error=_deployment_error(existing),
        accounts={
            name: (server.running.account if server.running else NO_ACCOUNT).seen(server.account_uid)
            for name, server in servers
        },
        queued=_queued((owned.detail for owned in existing), activator_pods),
    )


def pool_label(key: PoolKey) -> PoolLabel:
    """Return the label that identifies the objects of a pool, by its key."""
    return key.namespace, label(key.name)


def pool_name(label: str, names: Iterable[str]) -> str | None:
    """Return the name of the pool with this label. Of a shortened label it is the first of `names`, None without."""
    return next(iter(names), None) if _SHORTENED.fullmatch(label) else label


def _servers(existing: Iterable[Owned], pods: Iterable[PodView]) -> list[tuple[str, ServerObjects]]:
    """Return the servers with their full names, in the order of their labels."""
    servers: dict[str, ServerObjects] = {}
    for owned in existing:
        if owned.server:
            servers.setdefault(owned.server, ServerObjects()).add(owned.detail)
    for pod in pods:
        servers.setdefault(pod.server, ServerObjects()).pods.append(pod)
    return [(server.name(label), server) for label, server in sorted(servers.items())]


def _deployment_error(existing: Iterable[Owned]) -> str:
    """Return why the activator's Deployment, the only one that is no server's, has no Pod; empty where it has."""
    return next(
        (owned.detail.error for owned in existing if not owned.server and isinstance(owned.detail, Running)), ""
    )


def _queued(details: Iterable[object], pods: Iterable[PodView]) -> dict[str, int]:
    """Return how many requests wait at these Pods, terminating ones included, by resource name."""
    uids = {pod.uid for pod in pods}
    reports = (report for detail in details if isinstance(detail, ActivatorState) for report in detail.reports)
    queued: dict[str, int] = {}
    for report in reports:
        if report.pod in uids:
            for name, count in report.queued.items():
                queued[name] = queued.get(name, 0) + count
    return queued
