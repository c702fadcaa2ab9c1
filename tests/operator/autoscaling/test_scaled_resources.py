"""The fields of a model that a decision sets, and those that stay as declared."""

from typing import Any

import pytest
from tests.operator.planning.declared import model

from argosy.api import InferenceModel
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.pool.allocations import scaled_resource


def spec_of(allocation: Allocation, **spec: Any) -> Any:
    """Return the spec with the decision's fields."""
    declared = model("m", maxBatchSize=16, **spec)
    assert isinstance(declared, InferenceModel)
    return scaled_resource(declared, allocation, 1).spec


@pytest.mark.parametrize(
    ("declared", "most", "sizes"),
    [((), 4, (4,)), ((2, 4, 8), 4, (2, 4)), ((8, 16), 6, (6,)), ((2, 4), None, (2, 4))],
)
def test_a_decided_batch_limits_preferred_sizes_and_no_request(
    declared: tuple[int, ...], most: int | None, sizes: tuple[int, ...]
) -> None:
    spec = spec_of(Allocation(max_batch=most), batching={"preferredBatchSizes": list(declared)})
    assert (spec.batching.preferred_batch_sizes, spec.max_batch_size) == (sizes, 16)


def test_the_window_is_the_decided_one_and_the_rest_is_as_declared() -> None:
    spec = spec_of(Allocation(window_s=0.002, max_batch=8), batching={"preserveOrdering": True})
    batching = spec.batching
    assert (batching.max_queue_delay_microseconds, batching.preserve_ordering) == (2000, True)


def test_a_model_without_batching_gets_none() -> None:
    assert spec_of(Allocation(window_s=0.002, max_batch=8)).batching is None


@pytest.mark.parametrize(
    ("declared", "needed"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 3, "minReplicas": 1}, 1),
        ({"replicas": 3, "minReplicas": 2}, 2),
        ({"replicas": 3, "minReplicas": 0}, 1),
        ({"replicas": 1, "minReplicas": 2}, 1),
        ({"replicas": 0, "minReplicas": 2}, 0),
        ({"minReplicas": 2}, 2),
        ({"minReplicas": 0}, 0),
        ({}, 1),
    ],
)
def test_replicas_beyond_a_declared_minimum_are_not_required(declared: dict[str, int], needed: int) -> None:
    spec = scaled_resource(model("m", **declared), None).spec
    assert (spec.fewest_replicas, spec.least_replicas) == (
        declared.get("replicas", declared.get("minReplicas", 1)),
        needed,
    )
    again = scaled_resource(scaled_resource(model("m", **declared), None), None).spec
    assert again.least_replicas == needed
