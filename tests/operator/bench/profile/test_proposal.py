"""Knee and proposals on given curves, and the patch that they become."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.operator.planning.declared import model, model_body, parsed

from argosy.bench.profile.points import Failure, Memory, Point, Sweep, point
from argosy.bench.profile.proposal import Proposal, knee, propose
from argosy.bench.profile.settings import document, patch

MIB = 2**20
NO_MEMORY = Memory(10 * MIB)


def curve(seconds: dict[int, float], instances: int = 1, memory: Memory = NO_MEMORY) -> list[Point]:
    """Return a point for each size of batches, with the seconds of a request by size."""
    return [
        Point(instances, batch, instances * batch / took, took, took, 100, memory) for batch, took in seconds.items()
    ]


SATURATING = {1: 0.010, 2: 0.011, 4: 0.014, 8: 0.026, 16: 0.051}
"""From 8 rows on a row takes no less time."""
TWO = {1: 0.011, 2: 0.013, 4: 0.020, 8: 0.040, 16: 0.080}


def proposed(sweep: Sweep, budget: float | None = None) -> Proposal:
    proposal = propose(sweep, budget)
    assert proposal is not None
    return proposal


def test_the_knee_has_nearly_the_most_rows_with_the_smallest_batches() -> None:
    bend = knee(curve(SATURATING))
    assert bend is not None
    assert bend.batch == 8
    assert knee([]) is None


def test_without_a_budget_the_knee_is_proposed_and_nothing_waits() -> None:
    proposal = proposed(Sweep(curve(SATURATING)))
    assert (proposal.point.batch, proposal.delay, proposal.latency) == (8, 0.0, 0.052)


def test_a_budget_allows_for_the_batch_before_and_leaves_the_rest_to_the_delay() -> None:
    proposal = proposed(Sweep(curve(SATURATING)), 0.040)
    assert proposal.point.batch == 4
    assert proposal.delay == pytest.approx(0.012)
    assert proposal.latency == pytest.approx(0.040)


def test_a_batch_waits_no_longer_than_until_an_instance_is_free() -> None:
    assert proposed(Sweep(curve(SATURATING)), 1.0).delay == 0.026
    assert proposed(Sweep(curve(TWO, instances=2)), 1.0).delay == 0.010


def test_without_batches_nothing_waits() -> None:
    assert proposed(Sweep(curve({1: 0.010})), 1.0).delay == 0.0


def test_a_budget_that_nothing_keeps_has_no_proposal() -> None:
    assert propose(Sweep(curve(SATURATING)), 0.019) is None
    assert propose(Sweep()) is None


def test_more_instances_are_proposed_for_clearly_more_rows_only() -> None:
    both = Sweep([*curve(SATURATING), *curve(TWO, instances=2)])
    assert proposed(both).point.instances == 2
    no_better = Sweep([*curve(SATURATING), *curve({batch: 2 * took for batch, took in SATURATING.items()}, 2)])
    assert proposed(no_better).point.instances == 1


def test_a_size_that_beats_the_next_larger_one_is_preferred() -> None:
    uneven = {4: 0.010, 6: 0.020, 8: 0.0165, 16: 0.030}
    assert proposed(Sweep(curve(uneven))).preferred == (4,)
    assert proposed(Sweep(curve(SATURATING))).preferred == ()


def test_a_point_has_the_rows_of_all_requests() -> None:
    one = point(2, 4, [0.1] * 19 + [1.0], elapsed=2.0, memory=NO_MEMORY)
    assert (one.throughput, one.requests, one.p50) == (40.0, 20, pytest.approx(0.1))
    assert one.p95 > 0.1


UNEVEN = {4: 0.010, 6: 0.020, 8: 0.0165, 16: 0.030}
MANIFESTS: list[dict[str, Any]] = [
    {},
    {"maxBatchSize": 0},
    {"maxBatchSize": 64, "batching": {"maxQueueDelayMicroseconds": 500, "preferredBatchSizes": [32, 64]}},
    {"maxBatchSize": 64, "batching": {}, "instances": 4},
    {"maxBatchSize": 8, "scaling": {"minInstances": 2, "maxInstances": 4, "maxQueueDelay": "2ms"}},
]


def merged(target: Any, change: Any) -> Any:
    """Return a document after a JSON merge patch (RFC 7396)."""
    if not isinstance(change, Mapping):
        return change
    fields = dict(target) if isinstance(target, Mapping) else {}
    for name, value in change.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = merged(fields.get(name), value)
    return fields


@pytest.mark.parametrize("memory", [NO_MEMORY, Memory(10 * MIB, 1500 * MIB)])
@pytest.mark.parametrize("seconds", [SATURATING, {1: 0.01}, UNEVEN])
@pytest.mark.parametrize("manifest", MANIFESTS)
def test_the_patched_manifest_is_valid_and_has_what_was_proposed(
    manifest: dict[str, Any], seconds: dict[int, float], memory: Memory
) -> None:
    takes_batches = manifest.get("maxBatchSize") != 0
    proposal = proposed(Sweep(curve(seconds if takes_batches else {1: 0.01}, 2, memory)), 0.2)
    body = model_body("m", memory=0 if memory.gpu is None else 1, **manifest)
    spec = parsed(merged(body, patch(parsed(body), proposal))).spec
    assert spec.instances == 2
    assert spec.max_batch_size == (proposal.point.batch if takes_batches else 0)
    preferred = spec.batching.preferred_batch_sizes if spec.batching is not None else ()
    assert preferred == ((*proposal.preferred, proposal.point.batch) if proposal.preferred else ())
    if memory.gpu is not None:
        assert spec.footprint.gpu_memory == 768 * MIB


def test_the_patch_of_a_batch_of_one_joins_no_requests() -> None:
    proposal = proposed(Sweep(curve({1: 0.01})), 1.0)
    plain = patch(model("m", maxBatchSize=64), proposal)["spec"]
    assert plain == {"instances": 1, "maxBatchSize": 1}
    waiting = model("m", maxBatchSize=64, batching={"maxQueueDelayMicroseconds": 500, "preferredBatchSizes": [32]})
    batching = patch(waiting, proposal)["spec"]["batching"]
    assert batching == {"maxQueueDelayMicroseconds": 0, "preferredBatchSizes": None}


def test_memory_of_a_gpu_is_no_setting_of_a_model_on_the_cpu() -> None:
    proposal = proposed(Sweep(curve({1: 0.01}, memory=Memory(10 * MIB, 1500 * MIB))))
    assert "footprint" not in patch(model("m", memory=0), proposal)["spec"]


def test_the_document_has_all_that_was_measured() -> None:
    sweep = Sweep(curve(SATURATING), [Failure(2, 0, "it does not load")])
    written = document(sweep, proposed(sweep))
    assert written["points"][0] == {
        "instances": 1,
        "batch": 1,
        "rowsPerSecond": 100.0,
        "p50Seconds": 0.01,
        "p95Seconds": 0.01,
        "requests": 100,
        "hostBytes": 10 * MIB,
        "gpuBytes": None,
    }
    assert written["knees"] == {"1": 8}
    assert written["failures"] == [{"instances": 2, "batch": 0, "message": "it does not load"}]
    assert document(Sweep(), None)["proposal"] is None
    alone = Sweep(curve({1: 0.01}))
    assert document(alone, proposed(alone), takes_batches=False)["proposal"]["maxBatchSize"] == 0


def test_a_failure_says_at_what_size() -> None:
    assert str(Failure(1, 8, "no memory")) == (
        "with 1 instance, batches of 8 failed, and nothing larger was tried: no memory"
    )
    assert str(Failure(2, 0, "x")) == "with 2 instances, the load failed, and nothing larger was tried: x"
