"""What the last plan grants: replicas that have a place, and what their GPUs have left."""

from datetime import UTC, datetime

from tests.operator.planning import declared

from argosy.autoscaling.pool.grants import grants
from argosy.autoscaling.pool.policies import policies
from argosy.planning.demand.members import Members
from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.slices import first_index
from argosy.planning.packing.priorities import pack_by_priority

GIB = 1 << 30
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def spare_instances(gpu: Gpu) -> int | None:
    """Return the further instances of a model with 2 GiB and a tenth of a GPU's compute that is alone on a GPU."""
    pool = declared.pool()
    model = declared.model("m", footprint={"gpuMemory": "2Gi", "compute": "10%"}, instances=1, scaling={})
    resources = [pool, model]
    plan = pack_by_priority(declared.facts_of(resources, [Node("a", (gpu,))]))
    members, followed = {pool.key: Members.of(pool.key, resources)}, policies(resources, NOON)
    return grants(plan, None, members, followed)[model.identity].spare.instances


def test_a_slice_has_its_own_part_of_the_compute() -> None:
    index = first_index("1g.10gb", single=False)
    assert index is not None
    assert spare_instances(Gpu(0, 10 * GIB)) == 3
    assert spare_instances(Gpu(index, 10 * GIB, compute=142)) == 0


def test_what_does_not_scale_has_no_grant_and_what_a_scaled_ensemble_runs_has_one() -> None:
    resources = [
        declared.pool(),
        *(declared.model(name) for name in "abc"),
        declared.ensemble("pipe", "a", "b", maxReplicas=2),
    ]
    pool = declared.pool().key
    plan = pack_by_priority(declared.facts_of(resources, [declared.gpu_node("n")]))
    granted = grants(plan, None, {pool: Members.of(pool, resources)}, policies(resources, NOON))
    assert {name.rpartition("/")[2] for name in granted} == {"a", "b", "pipe"}
