"""What holds of every plan of builds, whatever is declared, stands and runs."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning import declared
from tests.operator.planning.builds.simulated_builds import Fleet, built, cpu, failed, hopper, loaded, pool, status
from tests.operator.planning.simulated_cluster import POOL
from tests.properties import examples

from argosy.api import Resource
from argosy.planning.builds.build import JobState, ObservedBuild
from argosy.planning.builds.scheduling import CPU_BUILDS
from argosy.planning.nodes.reservations import devices
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = st.sampled_from(["9.0", "8.0", ""])
NODES = st.lists(st.tuples(KINDS, st.integers(0, 4), st.booleans()), min_size=1, max_size=4)
MODELS = st.lists(
    st.fixed_dictionaries(
        {
            "memory": st.sampled_from([0, 20, 60]),
            "engine": st.booleans(),
            "uri": st.sampled_from(["x", "y", "z"]),
            "tensor": st.sampled_from([1, 1, 2]),
            "replicas": st.integers(0, 2),
        }
    ),
    max_size=6,
)
FATES = st.lists(st.sampled_from(["none", "active", "ready", "failed", "complete", "job failed"]), max_size=8)


def nodes(drawn: list[tuple[str, int, bool]]) -> tuple[Any, ...]:
    return tuple(
        hopper(f"n{at}", gpus, compute_capability=kind, schedulable=opened, nvlink=(frozenset(range(gpus)),))
        if gpus
        else replace(cpu(f"n{at}"), schedulable=opened)
        for at, (kind, gpus, opened) in enumerate(drawn)
    )


def resources(drawn: list[dict[str, Any]], version: int = 1) -> list[Resource]:
    result: list[Resource] = [pool()]
    for at, item in enumerate(drawn):
        spec: dict[str, Any] = {"storageUri": f"s3://b/{item['uri']}/{version}", "minReplicas": item["replicas"]}
        if item["tensor"] > 1 and item["engine"]:
            spec |= {"parallelism": {"tensor": 2}, "footprint": {}, "modelFormat": {"name": "huggingface"}}
            spec |= {"engine": {"builder": "tensorrt_llm"}}
            result[0] = pool(runtime={"name": "triton", "image": "every-backend"})
        make = built if item["engine"] else declared.model
        result.append(make(f"m{at}", version, item["memory"], **spec))
    return result


def observed(outcome: RoundOutcome, fates: list[str]) -> dict[str, ObservedBuild]:
    """Return the planned builds, each with one of these fates."""
    result = {}
    for build, fate in zip(outcome.builds[POOL], fates, strict=False):
        reports = {
            "ready": BuildReport(BuildState.READY, uri=f"s3://engines/{build.name}"),
            "failed": failed(BuildFailure.CRASHED),
        }
        job = {"active": JobState.ACTIVE, "complete": JobState.COMPLETE, "job failed": JobState.FAILED}
        if fate == "active" and not build.start:
            continue
        state = job.get(fate, JobState.ABSENT)
        result[build.name] = ObservedBuild(build.name, reports.get(fate), state, build.node, build.gpus)
    return result


@examples(60)
@given(NODES, MODELS, FATES)
def test_every_build_is_planned_once_and_takes_no_gpu_that_a_server_has(
    machines: list[tuple[str, int, bool]], models: list[dict[str, Any]], fates: list[str]
) -> None:
    snapshot = FleetSnapshot(tuple(resources(models)), nodes(machines))
    first = reconcile(snapshot, NOW)
    builds = observed(first, fates)
    before = PoolSnapshot(servers=first.servers(POOL), builds=builds)
    for outcome in (first, reconcile(replace(snapshot, pools={POOL: before}), NOW)):
        planned = outcome.builds[POOL]
        assert max(Counter(item.name for item in planned).values(), default=1) == 1
        reserved = [(item.node, gpu) for item in planned if item.start for gpu in item.gpus]
        assert len(reserved) == len(set(reserved))
        assert not set(reserved) & devices(server.current for server in outcome.plan.pools[0].servers)
        by_name = {node.name: node for node in snapshot.nodes}
        for item in planned:
            assert item.is_over or item.start or item.waits
            assert len(item.gpus) == (item.request.gpus if item.start else 0)
            if item.start and item.gpus:
                assert by_name[item.node].compute_capability == item.request.architecture
        on_cpu = [item for item in planned if item.start and not item.request.gpus]
        assert len(on_cpu) <= CPU_BUILDS
    after = {build.name: build for build in outcome.builds[POOL]}
    for name, build in builds.items():
        if build.job is JobState.ACTIVE and name in after:
            assert (after[name].start, after[name].node, after[name].gpus) == (True, build.node, build.gpus)
        if build.is_over and name in after:
            assert not after[name].start


@examples(8)
@given(NODES, MODELS, st.integers(0, 5))
def test_what_serves_goes_on_serving_whatever_is_built(
    machines: list[tuple[str, int, bool]], models: list[dict[str, Any]], broken: int
) -> None:
    """All models have new versions; some of the builds of these fail."""
    fleet = Fleet(nodes(machines))
    before = resources(models)
    fleet.settle(before)
    serving = {name: where for name, where in fleet.serving().items() if where}
    changed = resources(models, version=2)
    uris = sorted({model["uri"] for model in models})
    fleet.fails = {f"s3://b/{uri}/2": failed(BuildFailure.CRASHED) for uri in uris[:broken]}
    for _ in range(30):
        outcome = fleet.tick(changed)
        assert fleet.serving().keys() >= serving.keys()
    for item in before[1:]:
        engine = getattr(item.spec, "engine", None)
        if engine is not None and status(outcome, item.name).ready and loaded(fleet, item.name):
            requested = {one.storage_uri for one in status(outcome, item.name).engines if one.state == "Ready"}
            assert {uri for have in loaded(fleet, item.name).values() for uri in have.values()} <= requested
