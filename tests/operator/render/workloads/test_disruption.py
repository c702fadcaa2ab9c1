"""A drain takes one server after the other, and does not wait for one that would never be ready."""

import pytest
from tests.operator.render.workloads.cases import IMAGES, read_case

from argosy.render.workloads import Cluster, pool_objects


@pytest.mark.parametrize(
    ("cluster", "spec"),
    [
        (Cluster(evicts_unready=True), {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        (Cluster(evicts_unready=False), {"maxUnavailable": 1}),
    ],
)
def test_what_is_not_ready_may_be_evicted_where_that_is_recorded(cluster: Cluster, spec: dict[str, object]) -> None:
    case = read_case("gpu_pool")
    objects = pool_objects(case.pool, case.servers, case.members, IMAGES, cluster)
    (budget,) = (item for item in objects if item["kind"] == "PodDisruptionBudget")
    assert {name: value for name, value in budget["spec"].items() if name != "selector"} == spec
