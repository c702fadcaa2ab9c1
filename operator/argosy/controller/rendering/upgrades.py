"""Which servers keep their former Pod template for now: they are changed one after the other. Pure."""

from collections.abc import Iterable, Sequence

from argosy.api import ServingPool
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pool_view import PoolView
from argosy.planning.migration.disruption import ServerUpgrade, may_upgrade
from argosy.render.repositories import RenderedServer
from argosy.render.workloads import NO_ACCOUNT, Images, pod_template, template_hash


def deferred_servers(
    pool: ServingPool, servers: Sequence[RenderedServer], images: Images, view: PoolView
) -> frozenset[str]:
    """Return the servers that keep their former Pod template until it is their turn.

    With it stays the ConfigMap: what a Pod is told to load is for the GPUs and volumes that it has.
    """
    templates = {
        server.plan.name: pod_template(
            pool, server.plan, server.repository, images, view.accounts.get(server.plan.name, NO_ACCOUNT)
        )
        for server in servers
    }
    hashes = {name: template_hash(template) for name, template in templates.items()}
    outdated = {name for name, desired in hashes.items() if view.templates.get(name, desired) != desired}
    draining = {name for server in servers if server.plan.name not in outdated for name in server.drain_since}
    reports = {report.name: report for report in view.reports}
    upgrades = [
        ServerUpgrade(
            name=server.plan.name,
            outdated=server.plan.name in outdated,
            ready=server.plan.name in reports and reports[server.plan.name].ready and _is_reached(server, view.pods),
            settled=server.plan.name in reports and reports[server.plan.name].settled,
            relied_on=not server.routes.isdisjoint(draining),
        )
        for server in servers
    ]
    allowed = may_upgrade(upgrades)
    return frozenset(server.name for server in upgrades if server.outdated and server.name not in allowed)


def _is_reached(server: RenderedServer, pods: Iterable[PodView]) -> bool:
    """Whether requests find their way to all that it serves: Services follow a Pod that is ready, by its labels.

    Until then no other server may go, even if this one could answer.
    """
    mine = (pod for pod in pods if pod.server == server.plan.name and pod.ready and not pod.terminating)
    return any(server.routes <= pod.routes for pod in mine)
