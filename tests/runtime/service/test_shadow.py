"""Requests of a stable version are copied to a candidate, with real models: no client feels it, the metrics show it."""

import asyncio
import re

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, single_response, value
from tests.runtime.service.test_version_traffic import ALL, traffic
from tests.waiting import until

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest
from argosy_runtime.telemetry.shadow.statistics import Obstacle, ShadowStatistics

SHADOW = {"version": 2, "share": 1_000_000}


def config(shadow: dict[str, object] | None, text: str = CONFIG) -> str:
    """Return the configuration of a model whose first version answers, with this shadow."""
    return text + ALL + traffic({1: 100, 2: 0}, **({} if shadow is None else {"shadow": shadow}))


def add(repository, candidate: str = "pass", name: str = "m", **shadow: object) -> None:
    """Write a model whose versions both answer what they are sent, unless the `candidate` does something else."""
    text = config({**SHADOW, **shadow})
    repository.add(name, config=text)
    repository.add(name, execute=candidate, config=text, version=2)


async def loaded(serve, name: str = "m") -> DataPlane:
    """Return a data plane that serves a model."""
    plane: DataPlane = await serve()
    await plane.load(name, None, {})
    return plane


def shadow_of(plane: DataPlane, name: str = "m") -> ShadowStatistics:
    """Return the counters of a candidate."""
    statistics = plane.registry.find(name, "2").statistics.shadow
    assert statistics is not None
    return statistics


async def outcomes(plane: DataPlane, count: int, name: str = "m") -> dict[str, int]:
    """Return the outcomes once there are so many."""

    def total() -> int:
        statistics = plane.registry.find(name, "2").statistics.shadow
        return 0 if statistics is None else sum(statistics.outcomes.values())

    await until(lambda: total() >= count)
    return {outcome.value: number for outcome, number in shadow_of(plane, name).outcomes.items() if number}


async def metrics(plane: DataPlane) -> str:
    return b"".join([part async for part in plane.metrics()]).decode()


async def test_a_candidate_that_answers_alike_is_equal_and_gets_no_traffic(repository, serve):
    add(repository)
    plane = await loaded(serve)
    assert [await value(plane, "m") for _ in range(5)] == [1] * 5
    assert await outcomes(plane, 5) == {"equal": 5}
    stable, candidate = (plane.registry.find("m", version).statistics for version in ("1", "2"))
    assert (stable.success.count, candidate.success.count, candidate.pending) == (5, 0, 0)
    assert sum(candidate.durations().counts) == sum(candidate.queueing.counts) == 0
    assert candidate.inference_count == 5
    assert 1 <= candidate.execution_count <= 5  # those that wait at the same time share a batch
    text = await metrics(plane)
    assert 'argosy_version_requests_total{model="m",version="2",by="weight"} 0' in text
    assert 'argosy_shadow_requests_total{model="m",version="2",outcome="equal"} 5' in text
    assert 'argosy_shadow_candidate_duration_seconds_count{model="m",version="2"} 5' in text


async def test_answers_that_differ_are_examples_with_their_ids(repository, serve):
    add(repository, candidate="y = x + 0.5", tolerances=[{"output": "Y", "absolute": 0.1}])
    plane = await loaded(serve)
    response = await infer(plane, ask("m", 1.0, id="order-17"))
    assert (response.model_version, response.id, float(response.outputs[0].array[0, 0])) == ("1", "order-17", 1.0)
    await infer(plane, ask("m", 2.0))
    assert await outcomes(plane, 2) == {"different": 2}
    text = await metrics(plane)
    assert re.search(r'argosy_shadow_example\{.*output="Y",request_id="order-17",kind="Value"\} 0\.5', text)
    assert re.search(r'argosy_shadow_example\{.*output="Y",request_id="shadow-[0-9a-f]+-1",kind="Value"\} 0\.5', text)
    assert 'argosy_shadow_difference_max{model="m",version="2",output="Y"} 0.5' in text


async def test_tolerances_change_without_a_load(repository, serve):
    add(repository, candidate="y = x + 0.5")
    plane = await loaded(serve)
    versions = [plane.registry.find("m", version) for version in ("1", "2")]
    await value(plane, "m")
    assert await outcomes(plane, 1) == {"different": 1}
    tolerant = config({**SHADOW, "tolerances": [{"output": "Y", "relative": 0.5}]})
    (repository.path / "m" / "config.pbtxt").write_text(tolerant)
    await plane.load("m", None, {})
    await value(plane, "m")
    assert await outcomes(plane, 2) == {"different": 1, "equal": 1}
    (repository.path / "m" / "config.pbtxt").write_text(config(None))
    await plane.load("m", None, {})
    await value(plane, "m")
    assert [plane.registry.find("m", version) for version in ("1", "2")] == versions
    assert await outcomes(plane, 2) == {"different": 1, "equal": 1}


async def test_a_candidate_that_raises_or_dies_is_not_felt(repository, serve):
    add(repository, candidate="os._exit(1) if x[0, 0] > 5 else 1 / 0")
    plane = await loaded(serve)
    assert [await value(plane, "m") for _ in range(3)] == [1] * 3
    assert await outcomes(plane, 3) == {"failed": 3}
    assert [await value(plane, "m", 9.0) for _ in range(2)] == [9] * 2
    counts = await outcomes(plane, 5)
    assert counts.pop("failed") + counts.pop("skipped", 0) == 5
    assert not counts
    assert not any(plane.registry.find("m", "2").statistics.failures.values())


async def test_a_request_that_names_a_version_is_not_copied(repository, serve):
    add(repository)
    plane = await loaded(serve)
    await value(plane, "m", version="1")
    await value(plane, "m", version="2")
    assert plane.registry.find("m", "2").statistics.shadow is None
    assert plane.registry.find("m", "2").statistics.success.count == 1


async def test_the_unload_of_a_candidate_waits_for_nothing_that_is_mirrored(repository, serve, gate):
    add(repository, candidate=gate.code)
    plane = await loaded(serve)
    assert await value(plane, "m") == 1
    await gate.reached()
    statistics = shadow_of(plane)
    (repository.path / "m" / "config.pbtxt").write_text(CONFIG + ALL + traffic({1: 100}))
    for path in (repository.path / "m" / "2").iterdir():
        path.unlink()
    (repository.path / "m" / "2").rmdir()
    await plane.load("m", None, {})
    assert {outcome.value: count for outcome, count in statistics.outcomes.items() if count} == {"canceled": 1}
    assert await value(plane, "m") == 1
    gate.open()


async def test_the_end_of_the_server_waits_for_no_copy(repository, serve, gate):
    add(repository, candidate=gate.code)
    plane = await loaded(serve)
    assert await value(plane, "m") == 1
    await gate.reached()
    statistics = shadow_of(plane)
    plane.stop_accepting()
    await asyncio.wait_for(plane.registry.answered(60.0), 5.0)
    assert statistics.outcomes["canceled"] == 1
    gate.open()


async def test_a_server_that_ends_refuses_requests_of_a_shadowed_model_in_triton_s_words(repository, serve):
    add(repository)
    plane = await loaded(serve)
    assert await value(plane, "m") == 1
    plane.stop_accepting()
    with pytest.raises(ServingError, match="Server is stopping, scheduler for model has stopped accepting"):
        await value(plane, "m")


async def test_what_a_client_cancels_is_cancelled_at_the_candidate(repository, serve, gate):
    text = config(SHADOW)
    repository.add("m", execute=gate.code, config=text)
    repository.add("m", execute=gate.code, config=text, version=2)
    plane = await loaded(serve)
    request = asyncio.ensure_future(single_response(plane, ask("m")))
    await gate.reached()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    gate.open()
    counts = await outcomes(plane, 1)
    assert set(counts) <= {"canceled", "equal"}, counts


async def test_requests_of_the_candidate_go_before_mirrored_ones(repository, serve, gate):
    """A copy waits at the candidate; what comes later and names the candidate is executed first."""
    seen = "getattr(self, 'seen', None) or setattr(self, 'seen', []); self.seen.append(float(x[0, 0]))"
    execute = f"{seen}\n{gate.code}\ny = x * 0 + len(self.seen)"
    text = config(SHADOW, CONFIG.replace("max_batch_size: 8", "max_batch_size: 1"))
    repository.add("m", config=text)
    repository.add("m", execute=execute, config=text, version=2)
    plane = await loaded(serve)
    first = asyncio.ensure_future(value(plane, "m", version="2"))
    await gate.reached()
    assert await value(plane, "m") == 1
    second = asyncio.ensure_future(value(plane, "m", version="2"))
    await asyncio.sleep(0)
    gate.open()
    assert [await first, await second] == [1, 2]
    assert await outcomes(plane, 1) == {"different": 1}


async def test_an_ensemble_is_shadowed_as_a_unit_and_its_steps_count_requests_of_clients_only(repository, serve):
    repository.add("step", execute="y = x + 1")
    steps = """ensemble_scheduling { step [ { model_name: "step" model_version: 1
        input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }"""
    tensors = CONFIG.replace('backend: "python"', 'platform: "ensemble"').replace("dynamic_batching { }", "")
    text = config(SHADOW, tensors + steps)
    repository.write("pair", {"1/empty": "", "2/empty": ""}, text)
    plane = await loaded(serve, "pair")
    assert await value(plane, "pair") == 2
    assert await outcomes(plane, 1, "pair") == {"equal": 1}
    step, candidate = plane.registry.find("step").statistics, plane.registry.find("pair", "2").statistics
    assert (step.success.count, step.inference_count) == (1, 2)
    assert candidate.success.count == 0


async def test_a_mirrored_ensemble_takes_no_turn_of_a_divided_step_and_is_not_mirrored_again(repository, serve):
    step = CONFIG + ALL + traffic({1: 50, 2: 50})
    repository.add("step", execute="y = x * 0 + 1", config=step)
    repository.add("step", execute="y = x * 0 + 2", config=step, version=2)
    steps = """ensemble_scheduling { step [ { model_name: "step" model_version: -1
        input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }"""
    tensors = CONFIG.replace('backend: "python"', 'platform: "ensemble"').replace("dynamic_batching { }", "")
    repository.write("pair", {"1/empty": "", "2/empty": ""}, config(SHADOW, tensors + steps))
    plane = await loaded(serve, "pair")
    assert sorted([await value(plane, "pair") for _ in range(4)]) == [1, 1, 2, 2]
    counts = await outcomes(plane, 4, "pair")
    assert counts == {"equal": 2, "different": 2}, "copies run the step's version with the highest weight"
    split = plane.registry.records["step"].split
    assert split is not None
    assert {by.value: sum(routed.values()) for by, routed in split.routed.items()} == {
        "weight": 4,
        "key": 0,
        "sequence": 0,
    }


CALLS = """
from concurrent.futures import ThreadPoolExecutor
call = pb_utils.InferenceRequest(
    model_name="called", inputs=[pb_utils.Tensor("X", y)], requested_output_names=["Y"])
with ThreadPoolExecutor(1) as threads:  # no thread of the server
    threads.submit(call.exec).result()
y = call.exec().output_tensors()[0].as_numpy()
"""


async def test_what_a_mirrored_model_calls_is_no_traffic_of_the_called_one(repository, serve):
    divided = CONFIG + ALL + traffic({1: 50, 2: 50}, shadow={"version": 2, "share": 1_000_000})
    repository.add("called", config=divided)
    repository.add("called", config=divided, version=2)
    add(repository, candidate=CALLS)
    plane = await loaded(serve)
    await plane.load("called", None, {})
    assert [await value(plane, "m") for _ in range(3)] == [1] * 3
    assert await outcomes(plane, 3) == {"equal": 3}
    called = [plane.registry.find("called", version).statistics for version in ("1", "2")]
    assert sum(statistics.inference_count for statistics in called) == 6
    assert [statistics.success.count for statistics in called] == [0, 0]
    assert [sum(statistics.durations().counts) for statistics in called] == [0, 0]
    assert called[1].shadow is None, "it is not copied again"
    split = plane.registry.records["called"].split
    assert split is not None
    assert not any(sum(routed.values()) for routed in split.routed.values()), "it takes no turn of a client"
    assert plane.requests == 3, "clients' own"
    assert 'argosy_shadow_calls_total{model="m",version="2"} 3' in await metrics(plane)
    assert await value(plane, "m", version="2") == 1
    assert [statistics.success.count for statistics in called] == [1, 1], "a client's own request calls as ever"
    assert plane.requests == 6


async def test_what_a_mirrored_model_calls_waits_behind_the_requests_of_clients(repository, serve, gate):
    one_by_one = CONFIG.replace("max_batch_size: 8", "max_batch_size: 1")
    seen = "getattr(self, 'seen', None) or setattr(self, 'seen', []); self.seen.append(float(x[0, 0]))"
    repository.add("called", execute=f"{seen}\n{gate.code}\ny = x * 0 + len(self.seen)", config=one_by_one)
    add(repository, candidate=CALLS.replace("threads.submit(call.exec).result()", "pass"))
    plane = await loaded(serve)
    await plane.load("called", None, {})
    first = asyncio.ensure_future(value(plane, "called"))
    await gate.reached()
    assert await value(plane, "m", 5.0) == 5
    called = plane.registry.find("called")
    await until(lambda: called._dispatcher._open.mirrored)  # type: ignore[attr-defined]
    second = asyncio.ensure_future(value(plane, "called"))
    await asyncio.sleep(0)
    gate.open()
    assert [await first, await second] == [1, 2]
    assert await outcomes(plane, 1) == {"different": 1}


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_what_a_mirrored_model_calls_ends_with_its_copy(repository, serve, gate, isolation):
    one_by_one = CONFIG.replace("max_batch_size: 8", "max_batch_size: 1")
    repository.add("called", execute=gate.code, config=one_by_one)
    own = CONFIG + f'parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'
    calls = CALLS.replace("threads.submit(call.exec).result()", "pass")
    for version, execute in ((1, "pass"), (2, calls)):
        repository.add("m", execute=execute, config=config(SHADOW, own), version=version)
    plane = await loaded(serve)
    await plane.load("called", None, {})
    clients = [asyncio.ensure_future(value(plane, "called")) for _ in range(2)]
    await gate.reached()
    assert await value(plane, "m", 5.0) == 5
    called = plane.registry.find("called")._dispatcher  # type: ignore[attr-defined]
    candidate = plane.registry.find("m", "2").statistics
    await until(lambda: called._open.mirrored)
    plane.registry.end_shadows()
    await until(lambda: candidate.busy == 0)
    assert (called._open.mirrored, called._open.owed) == (0, 2), "it is free for clients before the called one is"
    gate.open()
    assert await asyncio.gather(*clients) == [1, 1]


async def test_streams_of_a_decoupled_model_are_compared(repository, serve):
    model = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range({count}):
                tensor = pb_utils.Tensor("Y", np.full((1, 1), number, np.float32))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    text = config(SHADOW, CONFIG + "model_transaction_policy { decoupled: true }\n")
    repository.write("m", {"1/model.py": model.format(count=3), "2/model.py": model.format(count=4)}, text)
    plane = await loaded(serve)
    values: list[float] = []
    over = asyncio.Event()

    def deliver(response) -> None:
        values.extend(float(output.array[0, 0]) for output in response.outputs)
        if response.final:
            over.set()

    plane.submit(ask("m"), deliver)
    await over.wait()
    assert values == [0.0, 1.0, 2.0]
    assert await outcomes(plane, 1) == {"different": 1}
    assert shadow_of(plane).outputs["Y"].examples[0].difference.detail == "4 responses instead of 3"


async def test_an_input_that_the_candidate_lacks_is_its_failure_and_a_bad_request_is_not(repository, serve):
    add(repository)
    own = CONFIG.replace('name: "X"', 'name: "Z"')
    repository.add("changed", config=config(SHADOW))
    repository.write("changed", {"2/model.py": "", "2/argosy.pbtxt": own}, config(SHADOW))
    repository.add("changed", config=config(SHADOW), version=2)
    plane = await loaded(serve)
    with pytest.raises(ServingError, match="expected 1 inputs"):
        await infer(plane, InferRequest("m", {**ask("m").inputs, "W": ask("m").inputs["X"].renamed("W")}))
    assert await value(plane, "m") == 1
    assert await outcomes(plane, 1) == {"equal": 1}
    await plane.load("changed", None, {})
    assert await value(plane, "changed") == 1
    assert await outcomes(plane, 1, "changed") == {"failed": 1}
    assert shadow_of(plane, "changed").failures["INVALID"] == 1


async def test_no_more_requests_than_allowed_are_mirrored_at_a_time(repository, serve, gate):
    add(repository, candidate=gate.code, maxInFlight=2)
    plane = await loaded(serve)
    assert [await value(plane, "m") for _ in range(6)] == [1] * 6
    await gate.reached()
    assert shadow_of(plane).obstacles[Obstacle.IN_FLIGHT] == 4
    gate.open()
    assert await outcomes(plane, 6) == {"equal": 2, "skipped": 4}
