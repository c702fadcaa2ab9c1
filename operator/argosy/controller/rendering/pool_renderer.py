"""All objects of a pool after a round: its servers', its builds', its activator's, and its members' revisions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api import InferenceModel
from argosy.api.values.identity import Identity, PoolKey
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.ports import Cache
from argosy.controller.rendering.activation import Activating, activating
from argosy.controller.rendering.builds import BuildRenderer
from argosy.controller.rendering.claims import retained_claims
from argosy.controller.rendering.revisions import RevisionNames, revisions
from argosy.controller.rendering.upgrades import deferred_servers, divided_servers
from argosy.controller.resources.store import Declared
from argosy.planning.variants import expanded, has_service
from argosy.reconcile import RoundOutcome
from argosy.render.names import object_name, service_name
from argosy.render.workloads import (
    Cluster,
    Images,
    KubernetesObject,
    desired_configmap,
    object_identity,
    owners,
    placeholder,
    pool_objects,
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A pool's objects with their owners, and those to retain for now (`keep`).

    `deferred`: servers of which nothing is applied yet; `wake`: when builds are to be checked again; `activating`: the
    pool's activator.
    """

    objects: tuple[KubernetesObject, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    keep: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()
    wake: datetime | None = None
    activating: Activating = field(default_factory=Activating)


class PoolRenderer:
    """Renders the objects of pools."""

    def __init__(self, images: Images, cluster: Cluster, cache: Cache, clock: Callable[[], datetime]) -> None:
        self._images, self._cluster, self._cache, self._clock = images, cluster, cache, clock
        self._revision_names = RevisionNames()

    def render(self, key: PoolKey, declared: Declared, outcome: RoundOutcome, view: PoolView) -> Rendered:
        """Return the objects of a pool after a round, with what is applied of them now."""
        pool, steps = declared.pool, outcome.steps.get(key, ())
        history = revisions(declared, outcome, self._cache.revisions(), self._revision_names)
        others = _moved_services(declared) | history.retained
        valid = outcome.valid.values()
        activator = activating(pool, valid, steps, view, outcome.statuses, self._images, self._cluster)
        if pool is None:
            return Rendered(keep=others, activating=activator)
        members = [resource for resource in declared.members if not resource.metadata.deletion_timestamp]
        every = (*expanded(valid), *outcome.rollouts.specs)
        models = [resource for resource in every if isinstance(resource, InferenceModel)]
        images = self._images.serving(pool, models)
        nodes = {node.name: node for node in self._cache.nodes()}
        renderer = BuildRenderer(pool, self._images, self._cluster, self._clock(), nodes)
        builds = renderer.builds(outcome.builds.get(key, ()), view.builds)
        parts = [part for part in expanded(members) if has_service(part)]
        pools = pool_objects(pool, steps, [*members, *parts], images, self._cluster, view.accounts, nodes)
        desired_placeholders = outcome.placeholders.get(key, ())
        placeholders = (placeholder(pool, desired, self._images, self._cluster) for desired in desired_placeholders)
        objects = (*history.written, *pools, *activator.objects, *builds.objects, *placeholders)
        deferred = deferred_servers(pool, steps, images, view)
        stay = frozenset(
            Identity.of(kind, pool.namespace, object_name(name))
            for name in deferred
            for kind in ("ConfigMap", "Deployment")
        )
        again = [
            desired_configmap(pool, server, nodes.get(server.plan.node))
            for server in divided_servers(pool, steps, deferred, outcome.rollouts, view)
        ]
        desired = (*(resource for resource in objects if object_identity(resource) not in stay), *again)
        stay -= {object_identity(resource) for resource in again}
        keep = stay | others | builds.keep | retained_claims(pool, steps, view.current)
        return Rendered(desired, owners(desired) | builds.owners, keep, deferred, builds.wake, activator)


def _moved_services(declared: Declared) -> frozenset[str]:
    """Return the identities of Services that another pool takes over unchanged, so that their addresses stay."""
    return frozenset(f"Service {member.namespace}/{service_name(member.name)}" for member in declared.of_other_pools)
