"""What of a decision is filled into a model, and what its own spec keeps."""

from typing import Any

import pytest
from tests.operator.planning.declared import model

from argosy.api import InferenceModel
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.pool.scaled_resources import scaled_resource


def form(allocation: Allocation, **spec: Any) -> Any:
    """The spec that is acted upon."""
    declared = model("m", maxBatchSize=16, **spec)
    assert isinstance(declared, InferenceModel)
    return scaled_resource(declared, allocation, 1).spec


@pytest.mark.parametrize(
    ("declared", "most", "sizes"),
    [((), 4, (4,)), ((2, 4, 8), 4, (2, 4)), ((8, 16), 6, (6,)), ((2, 4), None, (2, 4))],
)
def test_smaller_batches_are_put_together_and_requests_may_be_as_large_as_ever(
    declared: tuple[int, ...], most: int | None, sizes: tuple[int, ...]
) -> None:
    spec = form(Allocation(max_batch=most), batching={"preferredBatchSizes": list(declared)})
    assert (spec.batching.preferred_batch_sizes, spec.max_batch_size) == (sizes, 16)


def test_the_window_is_the_decided_one_beside_what_else_is_declared() -> None:
    spec = form(Allocation(window_s=0.002, max_batch=8), batching={"preserveOrdering": True})
    batching = spec.batching
    assert (batching.max_queue_delay_microseconds, batching.preserve_ordering) == (2000, True)


def test_who_declares_no_batching_gets_none() -> None:
    assert form(Allocation(window_s=0.002, max_batch=8)).batching is None
