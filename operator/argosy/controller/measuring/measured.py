"""The targets of a pool's metrics: its servers, by its Pods, and its members' queries. Pure."""

from collections.abc import Iterable

from argosy.analysis.subjects import AnalysisTargets
from argosy.api import Member
from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.planning.variants import expanded
from argosy.render.workloads import METRICS_PORT
from argosy.signals.targets import PoolTargets, ScrapeTarget, measured_pool


def pool_targets(
    key: PoolKey, members: Iterable[Member], pods: Iterable[PodView], analysis: AnalysisTargets | None = None
) -> PoolTargets:
    """Return the targets of a pool: its Pods that run or have routes. `analysis`: what its rollouts need.

    A server that has routes and does not answer is included, as one without metrics.
    """
    every = [member for member in expanded(members) if isinstance(member, Member)]
    return measured_pool(key, every, (_target(pod, every) for pod in _newest(pods)), analysis)


def _newest(pods: Iterable[PodView]) -> list[PodView]:
    """Return one Pod for each server: while one replaces another, the newer."""
    newest: dict[str, PodView] = {}
    for pod in sorted(pods, key=lambda pod: pod.created):
        if not pod.terminating and (pod.server_ready or pod.routes):
            newest[pod.server] = pod
    return [newest[server] for server in sorted(newest)]


def _target(pod: PodView, members: Iterable[Member]) -> ScrapeTarget:
    serves = {member.served_name: member.name for member in members if member.name in pod.routes}
    return ScrapeTarget(pod.server, _url(pod.address), pod.name, serves)


def _url(address: str) -> str:
    if not address:
        return ""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{METRICS_PORT}/metrics"
