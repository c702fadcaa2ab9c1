"""Which servers keep their former Pod template for now: servers are updated one after the other. Pure."""

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
    """Return the servers that keep their former Pod template until their update.

    They keep their ConfigMap too: its models are for the GPUs and volumes of the Pod.
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
    """Return whether Services route to all that it serves, to a ready Pod with the labels.

    Until then no other server may be updated, even if this one could answer.
    """
    mine = (pod for pod in pods if pod.server == server.plan.name and pod.ready and not pod.terminating)
    return any(server.routes <= pod.routes for pod in mine)
