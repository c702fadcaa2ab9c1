"""The desired routes of each Pod: its server's names, and those of them to which no Service leads. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from argosy.autoscaling.decision import Decision, Ejection
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.controller.resources.store import Declared
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.variants import expanded
from argosy.render.repositories import RenderedServer


def routed(
    steps: Iterable[RenderedServer],
    pods: Sequence[PodView],
    stay: Collection[str],
    ejections: Mapping[str, Ejection],
    choices: Mapping[str, VariantChoice] | None = None,
) -> dict[str, Routes]:
    """Return the routes of Pods that are not terminating, by Pod name.

    Pods of servers that `stay` retain their routes. `ejections` are by resource name, and so are `choices`: no Service
    leads to servers of variants that were not chosen, as long as one that was is ready.
    """
    routes = {step.plan.name: step.routes for step in steps}
    desired = {pod.name: _names(pod, routes, stay) for pod in pods}
    away: dict[str, set[str]] = {}
    for name, choice in (choices or {}).items():
        for pod in _of_other_variants(choice, [pod for pod in pods if name in desired[pod.name]]):
            away.setdefault(pod, set()).add(name)
    for name, ejection in ejections.items():
        reachable = [
            pod for pod in pods if pod.ready and name in desired[pod.name] and name not in away.get(pod.name, ())
        ]
        for pod in _ejected(ejection, reachable, name):
            away.setdefault(pod, set()).add(name)
    return {
        pod.name: Routes(desired[pod.name], frozenset(away.get(pod.name, ()))) for pod in pods if not pod.terminating
    }


def ejections_of(
    declared: Declared, decisions: Mapping[str, Decision], choices: Mapping[str, VariantChoice]
) -> dict[str, Ejection]:
    """Return ejections by resource name, of those with servers whose queues are too long. A model whose variants have
    servers of their own has that of the chosen variant.
    """
    decided = {member.name: decisions.get(member.identity) for member in expanded(declared.members)}
    decided |= {name: decided.get(choice.variant) for name, choice in choices.items()}
    return {
        name: decision.ejection
        for name, decision in decided.items()
        if decision is not None and decision.ejection.servers
    }


def opened_routes(pod: PodView, desired: Routes) -> Routes:
    """Return a Pod's routes with what may be reached more, and not yet with what may be reached less."""
    return Routes(pod.routes | desired.names, desired.ejected & pod.ejected | desired.ejected - pod.routes)


def differs(pod: PodView, desired: Routes, settled: bool) -> bool:
    """Return whether a Pod is to have other routes, or its readiness gate now."""
    return (pod.routes, pod.ejected) != (desired.names, desired.ejected) or (settled and not pod.settled)


def _names(pod: PodView, routes: Mapping[str, frozenset[str]], stay: Collection[str]) -> frozenset[str]:
    if pod.server in stay and pod.server_ready:
        return pod.routes
    gone = pod.terminating or not pod.server_ready
    return frozenset() if gone else routes.get(pod.server, frozenset())


def _of_other_variants(choice: VariantChoice, pods: Sequence[PodView]) -> list[str]:
    """Return the Pods of servers without the chosen variant; none if no Pod that has it is ready."""
    if not any(pod.ready and pod.server in choice.servers for pod in pods):
        return []
    return [pod.name for pod in pods if pod.server in choice.others]


def _ejected(ejection: Ejection, reachable: Sequence[PodView], name: str) -> list[str]:
    """Return the Pods to eject. One that Services route to now is left, since labels of new Pods take effect later."""
    ejected = ejection.among({pod.server for pod in reachable})
    led_to = {pod.server for pod in reachable if name in pod.routes and name not in pod.ejected}
    if ejected and led_to <= set(ejected):
        left = next((server for server in reversed(ejected) if server in led_to), ejected[-1])
        ejected = tuple(server for server in ejected if server != left)
    return [pod.name for pod in reachable if pod.server in ejected]
