"""Rounds that take values of the round before are those that take none, whatever changes between them."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node
from tests.operator.planning.simulated_cluster import Cluster
from tests.operator.test_reconcile_property import EDITS, NAMES, SIZES, Manifests, edit
from tests.properties import examples

from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot

SERVER_CHANGES = st.one_of(
    st.tuples(st.just("unready"), st.integers(0, 3)),
    st.tuples(st.just("unlabelled"), st.integers(0, 3)),
    st.tuples(st.just("restart"), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.integers(0, 4000)),
    st.tuples(st.just("lose"), st.integers(0, 2)),
)


class ComparedCluster(Cluster):
    """A cluster whose every round is decided a second time, without the cache."""

    def _reconciled(self, snapshot: FleetSnapshot) -> RoundOutcome:
        outcome, alone = super()._reconciled(snapshot), reconcile(snapshot, self.now)
        for name, status in alone.statuses.items():
            assert outcome.statuses[name] == status, name
        assert outcome == alone
        return outcome


def disturb(cluster: Cluster, what: str, number: int) -> None:
    """Let something happen to a server or a node, or time pass."""
    names = sorted(cluster.servers)
    server = names[number % len(names)] if names else ""
    if what == "unready":
        cluster.unready ^= {server}
    elif what == "unlabelled":
        cluster.unlabelled ^= {server}
    elif what == "restart" and server:
        cluster.restart(server)
    elif what == "lose" and len(cluster.nodes) > 1:
        cluster.lose(cluster.nodes[number % len(cluster.nodes)].name)
    elif what == "wait":
        cluster.now += timedelta(seconds=number)


@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=2, max_size=4),
    together=st.booleans(),
    changes=st.lists(st.tuples(EDITS, SERVER_CHANGES, st.integers(1, 12)), min_size=1, max_size=8),
    refuses=st.frozensets(st.tuples(st.sampled_from(NAMES), st.integers(2, 4)), max_size=2),
)
@example(
    sizes=[24, 60],
    together=True,
    changes=[(("version", "b", 2, 10), ("unready", 0), 9), (("pipe", "a", 0, 0), ("restart", 0), 9)],
    refuses=frozenset(),
)
@examples(30, suppress_health_check=[HealthCheck.too_slow])
def test_a_round_is_the_same_with_values_of_the_round_before(
    sizes: list[int],
    together: bool,
    changes: Sequence[tuple[tuple[str, str, int, int], tuple[str, int], int]],
    refuses: frozenset[tuple[str, int]],
) -> None:
    nodes = tuple(gpu_node(f"n{at}", 2, labels={"zone": zone}) for at, zone in enumerate(("x", "y", "y")))
    cluster, manifests = ComparedCluster(nodes, timedelta(seconds=2), refuses), Manifests()
    for name, size in zip(NAMES, sizes, strict=False):
        manifests.declare(name, 1, size, 1)
    manifests.pipe = NAMES[:2] if together else ()
    for change, disturbance, seconds in changes:
        edit(manifests, cluster, change)
        disturb(cluster, *disturbance)
        for _ in range(seconds):
            cluster.tick(manifests.resources())
