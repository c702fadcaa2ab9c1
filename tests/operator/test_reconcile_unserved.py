"""A resource that nothing serves any more claims no replicas, versions, places or traffic."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, Resource
from argosy.api.problems import Problem
from argosy.api.status import CordonedGpu, EnsembleStatus, InferenceModelStatus, ServingPoolStatus

MEMBERS = ("InferenceModel default/m", "Ensemble default/e")


def served() -> Cluster:
    """Return a cluster with a model and an ensemble that serve."""
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m"), ensemble("e", "m")])
    assert all(cluster.snapshot.statuses[name].ready for name in (*MEMBERS, "ServingPool default/p"))
    return cluster


def claims_nothing(cluster: Cluster, name: str, reason: str) -> None:
    """Assert that the status reports that nothing serves the resource, and why."""
    status = cluster.snapshot.statuses[name]
    assert (status.replicas, status.available_replicas, status.url, status.grpc_address) == (0, 0, "", "")
    if isinstance(status, InferenceModelStatus | EnsembleStatus):
        assert (status.versions, status.active_version, status.placement, status.bottleneck) == ((), None, (), None)
    if isinstance(status, EnsembleStatus):
        assert status.steps == ()
    parts = (ConditionType.READY, ConditionType.PLACED, ConditionType.LOADED, ConditionType.AVAILABLE)
    if isinstance(status, ServingPoolStatus):
        assert (status.servers, status.gpus, status.unplaced) == ((), None, ())
        parts = parts[:2]
    for kind in parts:
        condition = status.condition(kind)
        assert condition is not None, kind
        assert (condition.status, condition.reason) == ("False", reason), kind
        assert condition.message


def test_members_of_a_pool_that_was_deleted_claim_nothing() -> None:
    cluster = served()
    cluster.tick([model("m"), ensemble("e", "m")])
    for name in MEMBERS:
        claims_nothing(cluster, name, "UnknownPool")
    cluster.settle([pool(), model("m"), ensemble("e", "m")])
    assert all(cluster.snapshot.statuses[name].ready for name in MEMBERS)


def test_a_resource_that_never_was_valid_claims_nothing() -> None:
    cluster = served()
    cluster.forget()
    problem = Problem("", MEMBERS[0], "spec.version", "is wrong")
    cluster.snapshot = replace(cluster.snapshot, problems=(problem,), faulty=(model("m"),))
    cluster.tick([pool()])
    claims_nothing(cluster, MEMBERS[0], "InvalidSpec")


@pytest.mark.parametrize("name", [*MEMBERS, "ServingPool default/p"])
def test_what_is_being_deleted_claims_nothing(name: str) -> None:
    cluster = served()
    cluster.tick(
        [_deleted(resource) if resource.identity == name else resource for resource in cluster.snapshot.resources]
    )
    claims_nothing(cluster, name, "Deleting")


def _deleted(resource: Resource) -> Resource:
    metadata = resource.metadata.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})
    return resource.model_copy(update={"metadata": metadata})


def test_a_pool_without_servers_keeps_its_cordons() -> None:
    cluster = served()
    cordon = CordonedGpu(node="a", gpu=0, time="2026-01-01T00:00:00Z")
    status = cluster.snapshot.statuses["ServingPool default/p"].model_copy(update={"cordoned_gpus": (cordon,)})
    cluster.snapshot = replace(
        cluster.snapshot, statuses={**cluster.snapshot.statuses, "ServingPool default/p": status}
    )
    cluster.tick(
        [_deleted(resource) if resource.kind == "ServingPool" else resource for resource in cluster.snapshot.resources]
    )
    result = cluster.snapshot.statuses["ServingPool default/p"]
    assert isinstance(result, ServingPoolStatus)
    assert result.cordoned_gpus == (cordon,)


def test_an_unreadable_pool_goes_on_with_its_last_status() -> None:
    """An operator that starts when a pool is faulty leaves its servers as they are."""
    cluster = served()
    before = cluster.snapshot.statuses["ServingPool default/p"]
    cluster.forget()
    problem = Problem("", "ServingPool default/p", "spec.runtime", "is wrong")
    cluster.snapshot = replace(cluster.snapshot, problems=(problem,), faulty=(pool(),))
    cluster.tick([])
    status = cluster.snapshot.statuses["ServingPool default/p"]
    assert status.replicas == before.replicas == 1
    assert not status.ready
