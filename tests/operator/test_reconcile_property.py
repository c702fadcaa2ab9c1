"""Whatever happens in a cluster: what serves and is asked for stays reachable, all comes to rest, nothing is left."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import Resource

NAMES = ("a", "b", "c", "d")
SIZES = (0, 10, 24, 40, 60)


@dataclass
class Manifests:
    """What people declare, and how they change it."""

    zone: str = ""
    limit: int | None = None  # servers
    models: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # version, replicas, batch
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)  # GiB of each version
    pipe: tuple[str, ...] = ()
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)  # further ones of each model's spec
    packing: dict[str, str] = field(default_factory=dict)

    def resources(self) -> list[Resource]:
        """Return all resources."""
        limit = {"maxServers": self.limit} if self.limit else {}
        packing = {"packing": self.packing} if self.packing else {}
        result = [pool(nodeSelector={"zone": self.zone} if self.zone else {}, **limit, **packing)]
        for name, (version, replicas, batch) in self.models.items():
            size = self.sizes[name, version]
            further = self.fields.get(name, {})
            result.append(model(name, version, size, minReplicas=replicas, maxBatchSize=batch, **further))
        if self.pipe and set(self.pipe) <= self.models.keys():
            result.append(ensemble("pipe", *self.pipe))
        return result

    def declare(self, name: str, version: int, size: int, replicas: int, batch: int = 0) -> None:
        """Declare a model in this version, with this size unless it had one before."""
        self.sizes.setdefault((name, version), size)
        self.models[name] = (version, replicas, batch)

    def memory(self) -> dict[tuple[str, int], int]:
        """Return the bytes of each version."""
        return {version: size * GIB for version, size in self.sizes.items()}


EDITS = st.one_of(
    st.tuples(st.just("declare"), st.sampled_from(NAMES), st.sampled_from(SIZES), st.integers(1, 2)),
    st.tuples(st.just("version"), st.sampled_from(NAMES), st.integers(1, 4), st.sampled_from(SIZES)),
    st.tuples(st.just("batch"), st.sampled_from(NAMES), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("replicas"), st.sampled_from(NAMES), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(0), st.just(0)),
    st.tuples(st.just("pipe"), st.sampled_from(NAMES), st.just(0), st.just(0)),
    st.tuples(st.just("zone"), st.sampled_from(("", "x", "y")), st.just(0), st.just(0)),
    st.tuples(st.just("cordon"), st.sampled_from(("n0", "n1", "n2")), st.just(0), st.just(0)),
    st.tuples(st.just("forget"), st.just(""), st.just(0), st.just(0)),
)


def edit(manifests: Manifests, cluster: Cluster, change: tuple[str, str, int, int]) -> None:
    """Make one change."""
    what, name, number, more = change
    registered = manifests.models.get(name)
    if what == "declare" and registered is None:
        manifests.declare(name, 1, number, more)
    elif what == "version" and registered is not None:
        manifests.declare(name, number, more, *registered[1:])
    elif what == "replicas" and registered is not None:
        manifests.models[name] = (registered[0], number, registered[2])
    elif what == "batch" and registered is not None:
        manifests.models[name] = (*registered[:2], number)
    elif what == "delete":
        manifests.models.pop(name, None)
    elif what == "pipe":
        manifests.pipe = () if manifests.pipe else tuple(sorted({name, NAMES[0]}))
    elif what == "zone":
        manifests.zone = name
    elif what == "cordon":
        cluster.nodes = tuple(replace(n, schedulable=n.schedulable ^ (n.name == name)) for n in cluster.nodes)
    elif what == "forget":
        cluster.forget()


@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=2, max_size=4),
    replicas=st.integers(1, 2),
    together=st.booleans(),
    changes=st.lists(st.tuples(EDITS, st.integers(1, 30)), min_size=1, max_size=8),
    slow=st.integers(1, 6),
    refuses=st.frozensets(st.tuples(st.sampled_from(NAMES), st.integers(2, 4)), max_size=2),
    limit=st.none() | st.integers(1, 2),
)
@example(
    sizes=[24, 60],
    replicas=2,
    together=True,
    changes=[(("version", "b", 2, 10), 2)],
    slow=1,
    refuses=frozenset(),
    limit=None,
)
@examples(20, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_that_serves_and_is_declared_is_ever_unreachable(
    sizes: list[int],
    replicas: int,
    together: bool,
    changes: list[tuple[tuple[str, str, int, int], int]],
    slow: int,
    refuses: frozenset[tuple[str, int]],
    limit: int | None,
) -> None:
    nodes = tuple(gpu_node(f"n{at}", 2, labels={"zone": zone}) for at, zone in enumerate(("x", "y", "y")))
    cluster = Cluster(nodes, timedelta(seconds=slow), refuses)
    manifests = Manifests("x", limit)
    for name, size in zip(NAMES, sizes, strict=False):
        manifests.declare(name, 1, size, replicas)
    manifests.pipe = NAMES[:2] if together else ()
    cluster.settle(manifests.resources())
    for change, seconds in changes:
        edit(manifests, cluster, change)
        resources = manifests.resources()
        names = {resource.name for resource in resources if resource.kind != "ServingPool"}
        for _ in range(seconds):
            before = cluster.routed()
            cluster.tick(resources)
            after = cluster.routed()
            # Routes are changed in no order: only where some server keeps one, there is always an endpoint.
            lost = {name for name in before.keys() & names if not before[name] & after.get(name, set())}
            assert not {name for name in lost if not unavoidable(cluster, name, before[name])}, f"{lost} after {change}"
            assert not cluster.overcommitted(manifests.memory())
    finally_settled(manifests, cluster)


def unavoidable(cluster: Cluster, name: str, servers: set[str]) -> bool:
    """Return whether it was reached on restarted Pods, or gave way to what waited in a circle.

    There are too few GPUs to do it otherwise, and the status says so.
    """
    assert cluster.outcome is not None
    reported = [str(status.conditions) for key, status in cluster.outcome.statuses.items() if key.endswith(f"/{name}")]
    return servers <= cluster.replaced or any("because others waited for its room" in item for item in reported)


def finally_settled(manifests: Manifests, cluster: Cluster) -> None:
    """Check that once everything can be loaded, all that is placed serves there, and nothing else does."""
    cluster.refuses = frozenset()
    outcome = cluster.settle(manifests.resources())
    (plan,) = outcome.plan.pools
    reserved = {status for status in outcome.statuses.values() if "does not fit next to" in str(status.conditions)}
    unplaced = {name for item in plan.unplaced for name in item.models}
    if not unplaced and not reserved:
        assert all(status.ready for status in outcome.statuses.values())
        assert cluster.servers.keys() == {server.name for server in plan.servers}
        planned = {server.name: {placement.model for placement in server.placements} for server in plan.servers}
        versions = {name: version for name, (version, _, _) in manifests.models.items()}
        for name, pod in cluster.servers.items():
            assert all(pod.loaded[item].versions.keys() == {versions[item]} for item in planned[name])
            assert pod.loaded.keys() - {"pipe"} == planned[name]
