"""The response cache over whole models: what is answered from it, what is not, and what is reported."""

import asyncio
import tracemalloc

import numpy as np
import pytest
from tests.runtime.execution.fakes import VirtualClock
from tests.runtime.service.conftest import CONFIG, ask, infer, value
from tests.runtime.service.test_counts import counts, every_stage

from argosy_runtime.errors import ServingError
from argosy_runtime.execution.cached_answers import CachedAnswers
from argosy_runtime.messages import InferRequest, InferResponse, ResponseTemplate, Tensor
from argosy_runtime.scheduling.response_cache.cache import ResponseCache
from argosy_runtime.telemetry.statistics import ModelStatistics

CACHED = CONFIG.replace("dynamic_batching { }", "response_cache { enable: true }")
COUNTING = {"initialize": "self.runs = 0", "execute": "self.runs += 1; y = x + 100 * self.runs"}
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [ {
  model_name: "m" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
response_cache { enable: true }
"""


@pytest.fixture
async def plane(repository, serve):
    """Return a data plane with a cache of 1 MiB and the model `m`, whose answer differs from run to run."""
    repository.add("m", config=CACHED, **COUNTING)
    served = await serve(cache_bytes=1 << 20)
    await served.load("m", None, {})
    return served


async def test_an_equal_request_is_answered_again_without_a_run(plane):
    assert [await value(plane, "m", x) for x in (1, 1, 2, 1)] == [101, 101, 202, 101]
    hits = {"cache_hit": 2, "cache_miss": 2, **every_stage(2), "success": 4, "queue": 4}
    assert counts(plane, "m") == {"rows": 2, "runs": 2, "batches": {1: [2, 2, 2]}, **hits}
    stages = plane.statistics("m", "").model_stats[0].inference_stats
    assert 0 < stages.cache_hit.ns < stages.success.ns
    assert 0 < stages.cache_miss.ns < stages.success.ns


async def test_a_hit_has_the_id_of_its_request(plane):
    await infer(plane, ask("m", 1, id="first"))
    again = await infer(plane, ask("m", 1, id="again"))
    assert (again.id, again.model_name, again.model_version) == ("again", "m", "1")


async def test_an_array_of_an_answer_cannot_change_the_next_one(plane):
    assert (await infer(plane, ask("m", 1))).outputs[0].array == 101
    hit = (await infer(plane, ask("m", 1))).outputs[0].array
    with pytest.raises(ValueError, match="read-only"):
        hit[0, 0] = 7


async def test_shape_and_batch_are_part_of_a_request(plane):
    together = await infer(plane, ask("m", 1, 2))
    assert together.outputs[0].shape == (2, 1)
    assert (await infer(plane, ask("m", 1))).outputs[0].shape == (1, 1)


async def test_parameters_are_part_of_a_request(plane):
    assert (await infer(plane, ask("m", 1, parameters={"temperature": 1}))).outputs[0].array == 101
    assert (await infer(plane, ask("m", 1, parameters={"temperature": 2}))).outputs[0].array == 201


async def test_a_reload_begins_without_answers(repository, plane):
    assert await value(plane, "m") == 101
    repository.add("m", initialize="self.runs = 4", execute=COUNTING["execute"], config=CACHED)
    await plane.load("m", None, {})
    assert await value(plane, "m") == 501


async def test_errors_are_not_cached(repository, serve):
    repository.add("m", "self.runs = 0", "self.runs += 1; assert self.runs > 2; y = x + self.runs", config=CACHED)
    plane = await serve(cache_bytes=1 << 20)
    await plane.load("m", None, {})
    for _ in range(2):
        with pytest.raises(ServingError):
            await value(plane, "m")
    assert [await value(plane, "m"), await value(plane, "m")] == [4, 4]
    assert counts(plane, "m")["cache_miss"] == 1


async def test_equal_requests_at_the_same_time_all_run_and_the_first_answer_stays(repository, serve, gate):
    repository.add("m", "self.runs = 0", f"{gate.code}; self.runs += 1; y = x + 100 * self.runs", config=CACHED)
    plane = await serve(cache_bytes=1 << 20)
    await plane.load("m", None, {})
    both = [asyncio.ensure_future(value(plane, "m")) for _ in range(2)]
    await gate.reached()
    gate.open()
    assert [await one for one in both] == [101, 201]
    assert await value(plane, "m") == 101
    reported = counts(plane, "m")
    assert (reported["cache_miss"], reported["cache_hit"]) == (1, 1)


async def test_a_response_larger_than_the_cache_is_not_cached(repository, serve):
    repository.add("m", config=CACHED, **COUNTING)
    plane = await serve(cache_bytes=100)
    await plane.load("m", None, {})
    assert [await value(plane, "m"), await value(plane, "m")] == [101, 201]
    assert counts(plane, "m")["cache_miss"] == 2


@pytest.mark.parametrize("templated", [False, True])
def test_a_response_larger_than_the_cache_is_not_copied(templated: bool) -> None:
    statistics = ModelStatistics(caches=True)
    answers = CachedAnswers(ResponseCache(10_000), "m", 1, ["Y"], statistics, VirtualClock())
    large = Tensor("Y", "UINT8", np.zeros(1 << 22, np.uint8))
    response = InferResponse("m", "1", "", [large])
    if templated:
        response = ResponseTemplate([large.spec()], {}).response([large.data])
    tracemalloc.start()
    try:
        answers.keep(b"key", response, 5)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert statistics.cache_misses.count == 1


async def test_hits_keep_the_order_of_responses(repository, serve, gate):
    config = CACHED + "dynamic_batching { preserve_ordering: true }"
    repository.add("m", "pass", f"x[0, 0] != 2 or {gate.code}", config=config)
    plane = await serve(cache_bytes=1 << 20)
    await plane.load("m", None, {})
    await value(plane, "m", 1)
    left: list[float] = []
    for x in (2, 1):
        plane.submit(ask("m", x), lambda response: left.append(float(response.outputs[0].array[0, 0])))
    await gate.reached()
    assert left == []
    gate.open()
    await value(plane, "m", 3)
    assert left == [2, 1]


async def test_an_ensemble_keeps_its_own_answers(repository, serve):
    repository.add("m", config=CONFIG, **COUNTING)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve(cache_bytes=1 << 20)
    await plane.load("e", None, {})
    assert [await value(plane, "e"), await value(plane, "e")] == [101, 101]
    reported = counts(plane, "e")
    assert (reported["cache_hit"], reported["cache_miss"], reported["success"], reported["runs"]) == (1, 1, 2, 1)
    assert counts(plane, "m")["runs"] == 1
    repository.add("m", config=CONFIG, **{**COUNTING, "initialize": "self.runs = 6"})
    await plane.load("m", None, {})
    assert await value(plane, "e") == 701


async def test_an_ensemble_of_what_cannot_be_cached_is_refused(repository, serve):
    repository.add("m", config=CONFIG + "model_transaction_policy { decoupled: true }")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve(cache_bytes=1 << 20)
    with pytest.raises(ServingError, match="Cache does not currently support model e with 'decoupled' transaction"):
        await plane.load("e", None, {})


async def test_without_a_cache_the_setting_is_reported(repository, serve):
    repository.add("m", config=CACHED, **COUNTING)
    plane = await serve()
    await plane.load("m", None, {})
    assert [await value(plane, "m"), await value(plane, "m")] == [101, 201]
    index = await plane.index(ready_only=True)
    assert index.models[0].reason == "response_cache has no effect on this server"


async def test_strings_are_cached_too(repository, serve):
    config = CACHED.replace("TYPE_FP32", "TYPE_STRING")
    repository.add("m", "self.runs = 0", "self.runs += 1; y = x if self.runs == 1 else x[:0]", config=config)
    plane = await serve(cache_bytes=1 << 20)
    await plane.load("m", None, {})
    for _ in range(2):
        words = Tensor("X", "BYTES", np.array([[b"some words"]], object))
        response = await infer(plane, InferRequest("m", {"X": words}))
        assert response.outputs[0].array.tolist() == [[b"some words"]]
