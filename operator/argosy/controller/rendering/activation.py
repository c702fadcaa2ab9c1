"""The configuration of a pool's activator, and which models and ensembles Services route to it. Pure.

Services route to it what may go to zero, or is declared to be recreated, and is reachable on no server: because it has
no replica, its server is deleted and another one is not ready yet, or its version is being changed. A model's adapters
and their aliases are reached there as the model is, and requests for them are requests for the model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.api import Member, Resource, ServingPool
from argosy.api.conditions import ConditionType
from argosy.api.model.scaling.scaling import HOLD_MS
from argosy.api.status import Status
from argosy.autoscaling.pool.policies import may_be_queued, may_be_zero
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pool_view import PoolView
from argosy.planning.adapters import AdapterModel
from argosy.planning.variants import AliasModel, expanded
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import Cluster, Images, KubernetesObject, activator_objects
from argosy.render.workloads.services import GRPC_PORT, HTTP_PORT
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint
from argosy_common.wording import shortened

LONGEST_REASON = 300
"""Characters of the reason why a model is not placed: those of all models have to fit into a ConfigMap."""


@dataclass(frozen=True, slots=True)
class Activating:
    """The activator's objects; none where no model may go to zero. `routes`: the names to route to each of its Pods.

    `again`: the labels of this round route models to servers, which the next round has to check soon.
    """

    objects: tuple[KubernetesObject, ...] = ()
    routes: tuple[tuple[PodView, frozenset[str]], ...] = ()
    again: bool = False


def activating(
    pool: ServingPool | None,
    valid: Iterable[Resource],
    steps: Sequence[RenderedServer],
    view: PoolView,
    statuses: Mapping[str, Status],
    images: Images,
    cluster: Cluster,
) -> Activating:
    """Return a pool's activator after a round, from its accepted resources (`valid`) and its servers' next steps."""
    members = [] if pool is None or pool.spec.suspend else _activated(pool, valid, view.activators)
    if pool is None or not members:
        return Activating(routes=tuple((pod, frozenset[str]()) for pod in view.activators if pod.routes))
    desired = {step.plan.name: step.routes for step in steps}
    named = _named(members)
    activation = Activation(
        tuple(_activated_member(member, part, desired, view.pods, statuses) for part, member in named)
    )
    led, due = _reached(desired, view.pods)
    routes = frozenset(part.name for part, _ in named) - led
    return Activating(
        objects=activator_objects(pool, activation, images, cluster),
        routes=tuple((pod, routes) for pod in view.activators if not pod.terminating),
        again=bool(routes & due),
    )


def _activated(pool: ServingPool, valid: Iterable[Resource], pods: Iterable[PodView]) -> list[Member]:
    """Return the members that may go to zero, or are still routed to the activator, by name; where there are any of
    these, also those that have a gap when their version changes.

    Of members with the same name for clients, which are refused before, only the first is included.
    """
    there = {name for pod in pods for name in pod.routes}
    mine = [
        member
        for member in sorted(valid, key=lambda member: member.name)
        if not isinstance(member, ServingPool) and member.pool_key == pool.key
    ]
    mine = [member for member in mine if not member.metadata.deletion_timestamp]
    has_activator = any(may_be_zero(member) for member in mine)
    members: dict[str, Member] = {}
    for member in mine:
        if may_be_queued(member, has_activator=has_activator) or member.name in there:
            members.setdefault(member.served_name, member)
    return list(members.values())


def _named(members: Sequence[Member]) -> list[tuple[Member, Member]]:
    """Return the members and, after all of them, the adapters and aliases that they declare: each with its member.

    Of several with the same name for clients only the first is included.
    """
    named = {member.served_name: (member, member) for member in members}
    for member in members:
        for part in expanded([member]):
            if isinstance(part, AdapterModel | AliasModel):
                named.setdefault(part.served_name, (part, member))
    return list(named.values())


def _activated_member(
    member: Member,
    part: Member,
    desired: Mapping[str, frozenset[str]],
    pods: Iterable[PodView],
    statuses: Mapping[str, Status],
) -> ActivatedMember:
    """Return a member, or a part of it, which is on other servers at times: where its adapters are loaded already."""
    scaling = member.spec.scaling
    endpoints = tuple(
        Endpoint(pod.address, HTTP_PORT, GRPC_PORT)
        for pod in sorted(pods, key=lambda pod: pod.address)
        if pod.address and _answers(pod) and part.name in desired.get(pod.server, ())
    )
    timeout_ms = scaling.hold_timeout if scaling is not None else HOLD_MS
    return ActivatedMember(
        member.name,
        part.served_name,
        timeout_ms / 1000,
        endpoints,
        "" if endpoints else _reason(statuses.get(member.identity)),
    )


def _reached(desired: Mapping[str, frozenset[str]], pods: Iterable[PodView]) -> tuple[set[str], set[str]]:
    """Return the names that Services route to a server now, and those after this round's labels are applied."""
    led: set[str] = set()
    due: set[str] = set()
    for pod in pods:
        if pod.ready and _answers(pod):
            names = desired.get(pod.server, frozenset())
            led |= names & pod.routes
            due |= names
    return led, due


def _answers(pod: PodView) -> bool:
    return pod.server_ready and not pod.terminating


def _reason(status: Status | None) -> str:
    ready = status.condition(ConditionType.READY) if status is not None else None
    return shortened(ready.message if ready is not None else "", LONGEST_REASON)
