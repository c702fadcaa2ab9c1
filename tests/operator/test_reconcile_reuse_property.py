"""Rounds that take values of the round before are those that take none, whatever changes between them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node
from tests.operator.planning.simulated_cluster import Cluster
from tests.operator.test_reconcile_property import EDITS, NAMES, SIZES, Manifests, edit
from tests.properties import examples

from argosy.api import InferenceModel
from argosy.planning.demand.measured import Crash, MeasuredFootprint
from argosy.planning.rollouts.revision import revision_of
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot

ROLLOUT = {"steps": [{"traffic": "10%", "pause": "5s"}, {"traffic": "50%", "pause": "5s"}]}
FIELDS: tuple[dict[str, Any], ...] = (
    {"priority": 500},
    {"priority": -5},
    {"rollout": ROLLOUT},
    {"rollout": {**ROLLOUT, "strategy": "Recreate"}},
    {"modelName": "other-name"},
    {"replicas": 3},
)
"""What a model's spec may have besides its version, size and replicas."""
FIELD_CHANGES = st.one_of(
    st.tuples(st.just("field"), st.sampled_from(NAMES), st.integers(0, len(FIELDS) - 1)),
    st.tuples(st.just("plain"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("measured"), st.sampled_from(NAMES), st.integers(1, 70)),
    st.tuples(st.just("crash"), st.sampled_from(NAMES), st.integers(1, 70)),
    st.tuples(st.just("preemption"), st.just(""), st.just(0)),
    st.tuples(st.just("crashes"), st.sampled_from(NAMES), st.integers(1, 3)),
)
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


def adjust(manifests: Manifests, cluster: Cluster, what: str, name: str, number: int) -> None:
    """Change a further field of a model or of the pool, or let a model have been measured, or end with requests."""
    if what == "field":
        manifests.fields[name] = {**manifests.fields.get(name, {}), **FIELDS[number]}
    elif what == "plain":
        manifests.fields.pop(name, None)
    elif what == "preemption":
        manifests.packing = {} if manifests.packing else {"preemption": "LowerPriority"}
    elif what == "crashes":
        cluster.crashes ^= {(name, number)}
    else:
        measure(cluster, name, number * GIB, crashed=what == "crash")


def measure(cluster: Cluster, name: str, used: int, *, crashed: bool) -> None:
    """Let a model that is acted upon have been measured to use so much of a GPU, until its process crashed or not."""
    model = cluster.snapshot.valid.get(f"InferenceModel default/{name}")
    if isinstance(model, InferenceModel):
        crash, now = Crash(used, cluster.now) if crashed else None, cluster.now
        footprint = MeasuredFootprint(now, None, used, used, now, 1, revision_of(model).name, 1, "p-0", crash=crash)
        footprints = {**cluster.snapshot.footprints, model.identity: footprint}
        cluster.snapshot = replace(cluster.snapshot, footprints=footprints)


@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=2, max_size=4),
    together=st.booleans(),
    changes=st.lists(st.tuples(EDITS, FIELD_CHANGES, SERVER_CHANGES, st.integers(1, 12)), min_size=1, max_size=8),
    refuses=st.frozensets(st.tuples(st.sampled_from(NAMES), st.integers(2, 4)), max_size=2),
)
@example(
    sizes=[24, 60],
    together=True,
    changes=[
        (("version", "b", 2, 10), ("field", "a", 2), ("unready", 0), 9),
        (("pipe", "a", 0, 0), ("field", "b", 4), ("restart", 0), 9),
    ],
    refuses=frozenset(),
)
@examples(12, suppress_health_check=[HealthCheck.too_slow])
def test_a_round_is_the_same_with_values_of_the_round_before(
    sizes: list[int],
    together: bool,
    changes: Sequence[tuple[tuple[str, str, int, int], tuple[str, str, int], tuple[str, int], int]],
    refuses: frozenset[tuple[str, int]],
) -> None:
    nodes = tuple(gpu_node(f"n{at}", 2, labels={"zone": zone}) for at, zone in enumerate(("x", "y", "y")))
    cluster, manifests = ComparedCluster(nodes, timedelta(seconds=2), refuses), Manifests()
    for name, size in zip(NAMES, sizes, strict=False):
        manifests.declare(name, 1, size, 1)
    manifests.pipe = NAMES[:2] if together else ()
    for change, adjustment, disturbance, seconds in changes:
        edit(manifests, cluster, change)
        adjust(manifests, cluster, *adjustment)
        disturb(cluster, *disturbance)
        for _ in range(seconds):
            cluster.tick(manifests.resources())
