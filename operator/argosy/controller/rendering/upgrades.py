"""Which servers keep their former Pod template for now: servers are updated one after the other. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from argosy.api import ServingPool
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pool_view import PoolView
from argosy.planning.migration.disruption import ServerUpgrade, as_it_is, may_upgrade
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.render.config.traffic_config import traffic_of
from argosy.render.repositories import RenderedServer, divided
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


def divided_servers(
    pool: ServingPool, servers: Sequence[RenderedServer], deferred: Collection[str], rollouts: Rollouts, view: PoolView
) -> Iterator[RenderedServer]:
    """Yield the deferred servers that do not divide requests as rollouts desire: as they run, with that changed alone.

    Requests are taken from a bad version at once, whenever the server's turn comes.
    """
    here = {one.declared.name: one for one in rollouts.members.values() if one.declared.pool_key == pool.key}
    loaded, current = {one.server: one for one in view.repositories}, {one.name: one for one in view.current}
    for server in servers:
        name, runtime = server.plan.name, pool.spec.runtime.name
        traffic = {member: traffic_of(one, runtime) for member, one in here.items() if name in one.undivided}
        if traffic and name in deferred and name in loaded and name in current:
            yield replace(server, plan=as_it_is(current[name]), repository=divided(loaded[name], traffic))


def _is_reached(server: RenderedServer, pods: Iterable[PodView]) -> bool:
    """Return whether Services route to all that it serves, to a ready Pod with the labels.

    Until then no other server may be updated, even if this one could answer.
    """
    mine = (pod for pod in pods if pod.server == server.plan.name and pod.ready and not pod.terminating)
    return any(server.routes <= pod.routes for pod in mine)
