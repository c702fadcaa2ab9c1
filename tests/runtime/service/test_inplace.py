"""Instances and batching change under a model that serves: nothing is loaded again, and no request is lost."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, reason, responses, settled, states, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.describing import series
from argosy_runtime.repository.options import ControlMode

INSTANCES = CONFIG + "instance_group [ { count: %d kind: KIND_CPU } ]"


def log(path: Path) -> str:
    """Return code by which a loading model logs its name, its process and its largest batch."""
    return f"""
        import json
        self.most = json.loads(args["model_config"])["max_batch_size"]
        with open({str(path)!r}, "a") as file:
            file.write(f"{{args['model_instance_name']}} {{os.getpid()}}\\n")
    """


def loaded(path: Path) -> list[str]:
    """Return the instances that have been loaded, in order, by name."""
    return [line.split()[0] for line in path.read_text().splitlines()]


def configure(repository, text: str, name: str = "m") -> None:
    """Write another configuration."""
    (repository.path / name / "config.pbtxt").write_text(text)


@pytest.fixture
def loads(tmp_path) -> Path:
    """Return the file in which models log their loads."""
    path = tmp_path / "loads"
    path.touch()
    return path


async def test_more_and_fewer_instances_while_requests_come(repository, serve, loads):
    repository.add("m", log(loads), "time.sleep(0.002); y = x * 2", (INSTANCES % 1))
    plane = await serve(unload_grace=20)
    await plane.load("m", None, {})
    stop = asyncio.Event()
    answers: list[float] = []

    async def client() -> None:
        while not stop.is_set():
            answers.append(await value(plane, "m", 3))

    clients = [asyncio.create_task(client()) for _ in range(8)]
    statistics = plane.registry.find("m").statistics
    for count in (3, 1, 2, 1):
        configure(repository, (INSTANCES % count))
        await plane.load("m", None, {})
        assert plane.registry.find("m").config.instance_group[0].count == count
        assert plane.registry.find("m").instances == count
    stop.set()
    await asyncio.gather(*clients)
    assert set(answers) == {6.0}
    assert sorted(loaded(loads)) == ["m_0_0", "m_0_1", "m_0_1", "m_0_2"]
    assert plane.registry.find("m").statistics is statistics
    assert statistics.fail.count == 0
    assert statistics.success.count == len(answers)
    assert (await states(plane))["m:1"] == "READY"


async def test_instances_run_side_by_side(repository, serve, gate, loads):
    repository.add("m", log(loads), gate.code, (INSTANCES % 1))
    plane = await serve()
    await plane.load("m", None, {})
    running = asyncio.create_task(value(plane, "m", 1))
    await gate.reached()
    configure(repository, (INSTANCES % 2))
    await plane.load("m", None, {})
    gate.open()
    assert await value(plane, "m", 2) == 2
    assert await running == 1
    assert len({line.split()[1] for line in loads.read_text().splitlines()}) == 2


async def test_one_too_many_answers_what_it_runs(repository, serve, gate):
    repository.add("m", execute=f"{gate.code}; y = x + os.getpid()", config=(INSTANCES % 2))
    plane = await serve()
    await plane.load("m", None, {})
    running = [asyncio.create_task(value(plane, "m", 0)) for _ in range(2)]
    await gate.reached()
    configure(repository, (INSTANCES % 1))
    shrinking = asyncio.create_task(plane.load("m", None, {}))
    await until(lambda: plane.registry.find("m").instances == 1)
    assert not shrinking.done(), "it is so once the instance has gone"
    gate.open()
    processes = await asyncio.gather(*running)
    await shrinking
    assert len(set(processes)) == 2
    assert await value(plane, "m", 0) in processes


async def test_one_that_cannot_load_leaves_those_that_serve(repository, serve, tmp_path):
    full = tmp_path / "full"
    repository.add("m", f"assert not os.path.exists({str(full)!r}), 'out of memory'", "y = x", (INSTANCES % 2))
    plane = await serve()
    await plane.load("m", None, {})
    full.touch()
    configure(repository, (INSTANCES % 4))
    with pytest.raises(ServingError, match="out of memory"):
        await plane.load("m", None, {})
    assert (await states(plane))["m:1"] == "READY"
    assert plane.registry.find("m").config.instance_group[0].count == 2
    assert plane.registry.find("m").instances == 2
    assert await value(plane, "m", 5) == 5
    full.unlink()
    await plane.load("m", None, {})
    assert plane.registry.find("m").config.instance_group[0].count == 4


async def test_of_several_versions_all_change_or_none(repository, serve, tmp_path):
    full = tmp_path / "full"
    every = "version_policy { all {} }"
    repository.add("m", "pass", "y = x + 1", (INSTANCES % 1) + every)
    repository.add("m", f"assert not os.path.exists({str(full)!r})", "y = x + 2", (INSTANCES % 1) + every, version=2)
    plane = await serve()
    await plane.load("m", None, {})
    full.touch()
    configure(repository, (INSTANCES % 2) + every)
    with pytest.raises(ServingError):
        await plane.load("m", None, {})
    locations = [plane.registry.find("m", v).instances for v in ("1", "2")]
    assert locations == [1, 1]
    assert [await value(plane, "m", 0, version=v) for v in ("1", "2")] == [1, 2]


async def test_the_window_the_limits_and_the_order_change_inplace(repository, serve, loads):
    rows = "y = x * 0 + sum(r.inputs()[0].as_numpy().shape[0] for r in requests)"
    repository.add("m", log(loads), rows, CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    hour = CONFIG.replace("{ }", "{ max_queue_delay_microseconds: 3600000000 preferred_batch_size: [ 3 ] }")
    configure(repository, hour)
    await plane.load("m", None, {})
    (now,) = [sery.service for sery in series(plane.registry.records.values(), 0)]
    assert now is not None
    assert (now.max_batch_size, now.max_queue_delay_us) == (3, 3600000000), "what is measured is what is so now"
    three = await asyncio.gather(*[value(plane, "m") for _ in range(3)])
    assert three == [3, 3, 3], "a batch of the preferred size does not wait"
    waiting = asyncio.create_task(value(plane, "m"))
    configure(
        repository, CONFIG.replace("{ }", "{ preserve_ordering: true default_queue_policy { max_queue_size: 7 } }")
    )
    await until(lambda: plane.registry.find("m").statistics.pending)
    await plane.load("m", None, {})
    assert await waiting == 1, "what waited for an hour waits no longer"
    assert await asyncio.gather(*[value(plane, "m") for _ in range(2)]) != []
    configure(repository, CONFIG.replace("dynamic_batching { }", ""))
    await plane.load("m", None, {})
    assert await asyncio.gather(*[value(plane, "m") for _ in range(3)]) == [1, 1, 1]
    assert loaded(loads) == ["m_0"]


async def test_a_lower_batch_limit_and_back(repository, serve, loads):
    repository.add("m", log(loads), "y = x", CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    configure(repository, CONFIG.replace("8", "2"))
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="batch-size must be <= 2"):
        await infer(plane, ask("m", 1, 2, 3))
    assert plane.model_config("m", "").max_batch_size == 2
    configure(repository, CONFIG)
    await plane.load("m", None, {})
    assert len((await infer(plane, ask("m", 1, 2, 3))).outputs[0].array) == 3
    assert loaded(loads) == ["m_0"]
    configure(repository, CONFIG.replace("8", "16"))
    await plane.load("m", None, {})
    assert loaded(loads) == ["m_0", "m_0"], "more than it was loaded for is another model"


async def test_queued_requests_are_answered_under_a_lower_limit(repository, serve, gate, loads):
    repository.add("m", log(loads), f"{gate.code}; y = x + self.most", CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    first = asyncio.create_task(infer(plane, ask("m", 1)))
    await gate.reached()
    large = asyncio.create_task(infer(plane, ask("m", *range(8))))
    await until(lambda: plane.registry.find("m").statistics.pending)
    gate.open()
    configure(repository, (INSTANCES % 2).replace("8", "2"))
    await plane.load("m", None, {})
    np.testing.assert_array_equal((await large).outputs[0].array[:, 0], np.arange(8) + 8)
    assert (await first).outputs[0].array[0, 0] == 9


async def test_instances_of_another_kind_come_before_the_others_go(repository, serve, loads):
    repository.add("m", log(loads), "y = x", (INSTANCES % 2))
    plane = await serve()
    await plane.load("m", None, {})
    configure(repository, (INSTANCES % 1).replace("kind", "profile: [ '1' ] kind"))
    with pytest.raises(ServingError):
        await plane.load("m", None, {})
    configure(repository, (INSTANCES % 1).replace("KIND_CPU", "KIND_MODEL"))
    await plane.load("m", None, {})
    assert loaded(loads)[2:] == ["m_0_0"]
    assert plane.registry.find("m").instances == 1
    assert await value(plane, "m", 4) == 4


async def test_a_wrong_count_is_reported_and_changes_nothing(repository, serve):
    repository.add("m", execute="y = x", config=(INSTANCES % 1))
    plane = await serve()
    await plane.load("m", None, {})
    configure(repository, (INSTANCES % -1) + "dynamic_batching { preferred_batch_size: [ 99 ] }")
    with pytest.raises(ServingError) as caught:
        await plane.load("m", None, {})
    assert caught.value.kind in (ErrorKind.INVALID_ARG, ErrorKind.INTERNAL)
    assert await value(plane, "m", 4) == 4


async def test_a_stream_goes_on_while_its_instance_goes(repository, serve, gate):
    stream = f"""
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]))
            {gate.code}
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + 1)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    config = INSTANCES + "model_transaction_policy { decoupled: true }"
    repository.write("m", {"1/model.py": stream}, (config % 2))
    plane = await serve()
    await plane.load("m", None, {})

    async def read() -> list[float]:
        return [float(r.outputs[0].array[0, 0]) async for r in responses(plane, ask("m", 1)) if r.outputs]

    reading = [asyncio.create_task(read()) for _ in range(2)]
    await gate.reached()
    configure(repository, (config % 1))
    shrinking = asyncio.create_task(plane.load("m", None, {}))
    await until(lambda: plane.registry.find("m").instances == 1)
    gate.open()
    assert await asyncio.gather(*reading) == [[1, 2], [1, 2]]
    await shrinking


async def test_an_ensemble_goes_on_with_its_steps(repository, serve, loads):
    repository.add("m", log(loads), "y = x + 1", (INSTANCES % 1))
    ensemble = CONFIG.replace('backend: "python"', 'platform: "ensemble"').replace(
        "dynamic_batching { }",
        'ensemble_scheduling { step [ { model_name: "m" model_version: -1 input_map { key: "X" value: "X" } '
        'output_map { key: "Y" value: "Y" } } ] }',
    )
    repository.write("e", {"1/.keep": ""}, ensemble)
    plane = await serve()
    await plane.load("e", None, {})
    configure(repository, (INSTANCES % 2))
    await plane.load("m", None, {})
    assert await value(plane, "e", 1) == 2
    configure(repository, (INSTANCES % 2).replace("8", "4"))
    await plane.load("m", None, {})
    assert "only allows maximum batch size to be 4" in await reason(plane, "e")
    assert loaded(loads) == ["m_0_0", "m_0_1"]


async def test_polling_sees_it_too(repository, serve, loads):
    repository.add("m", log(loads), "y = x", (INSTANCES % 1))
    plane = await serve(ControlMode.POLL)
    configure(repository, (INSTANCES % 3))
    await plane.poll()
    assert loaded(loads)[:1] == ["m_0_0"]
    assert sorted(loaded(loads)[1:]) == ["m_0_1", "m_0_2"]


async def test_one_that_is_lost_goes_first(repository, serve, loads):
    repository.add("m", log(loads), "os._exit(3) if x[0, 0] == 7 else None; y = x", (INSTANCES % 2))
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError):
        await value(plane, "m", 7)
    configure(repository, (INSTANCES % 1))
    await plane.load("m", None, {})
    assert await value(plane, "m", 1) == 1
    assert sorted(loaded(loads)) == ["m_0_0", "m_0_1"], "what was lost did not come back for a moment"
    await settled(plane)


async def test_a_strategy_without_dynamic_batching_is_refused_as_by_a_load(repository, serve):
    plain = CONFIG.replace("dynamic_batching { }", "")
    repository.add("m", execute="y = x", config=plain)
    plane = await serve()
    await plane.load("m", None, {})
    configure(repository, plain + 'parameters { key: "BATCH_STRATEGY" value { string_value: "pairs.py" } }')
    with pytest.raises(ServingError, match="only dynamic_batching puts requests together"):
        await plane.load("m", None, {})
    assert await value(plane, "m", 2.0) == 2.0
