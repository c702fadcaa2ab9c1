"""Models that requests load, and that give way to others."""

import asyncio
from itertools import count

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, settled, single_response, states, value
from tests.runtime.service.test_lifecycle import ENSEMBLE
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.ondemand import loads as loads_module
from argosy_runtime.repository.options import OnDemandOptions
from argosy_runtime.telemetry import statistics as statistics_module
from argosy_runtime.telemetry.machine.memory import ModelMemory

SIZE = 100_000


def add(repository, name: str, size: int = SIZE, **code: str):
    """Add a model whose files are `size` bytes together."""
    folder = repository.add(name, **code)
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    (folder / "1/weights").write_bytes(bytes(size - used))
    return folder


@pytest.fixture
def serve_on_demand(serve, monkeypatch):
    """Return `serve_on_demand(limit)`: models count by the size of their files, as those in threads do."""

    monkeypatch.setattr(ModelMemory, "of_model", lambda self, model: 0)

    async def start(limit: int = 0, wait: float = 30.0, **options: object):
        return await serve(on_demand=OnDemandOptions(limit, wait), **options)

    return start


async def test_the_first_request_loads_its_model(repository, serve_on_demand):
    add(repository, "m")
    plane = await serve_on_demand()
    assert await states(plane) == {"m": ""}
    assert plane.model_ready("m", "")
    assert plane.ready()
    assert await value(plane, "m", 3.0) == 3.0
    assert await states(plane) == {"m:1": "READY"}
    assert plane.on_demand.loads == {"m": 1}


async def test_requests_at_the_same_time_share_a_load(repository, serve_on_demand):
    add(repository, "m")
    plane = await serve_on_demand()
    assert await asyncio.gather(*(value(plane, "m", float(x)) for x in range(8))) == [float(x) for x in range(8)]
    assert plane.on_demand.loads == {"m": 1}


async def test_without_it_nothing_is_loaded(repository, serve):
    add(repository, "m")
    plane = await serve()
    with pytest.raises(ServingError, match="Request for unknown model: 'm' is not found"):
        await value(plane, "m")


async def test_an_unknown_model_is_unknown(repository, serve_on_demand):
    plane = await serve_on_demand()
    assert not plane.model_ready("nope", "")
    for _ in range(2):
        with pytest.raises(ServingError) as caught:
            await value(plane, "nope")
        assert caught.value.kind is ErrorKind.NOT_FOUND
        assert caught.value.message == "Request for unknown model: 'nope' is not found"
    # It is there from the next request on.
    add(repository, "nope")
    assert await value(plane, "nope", 2.0) == 2.0


async def test_a_model_that_cannot_be_loaded_rests(repository, serve_on_demand, monkeypatch):
    add(repository, "m", initialize="raise ValueError('no weights')")
    plane = await serve_on_demand()
    for _ in range(3):
        with pytest.raises(ServingError, match="no weights"):
            await value(plane, "m")
    assert plane.on_demand.failures == {"m": 1}
    assert not plane.model_ready("m", "")
    monkeypatch.setattr(loads_module, "_REST_NS", 0)
    plane.on_demand._failed.clear()
    add_source = (repository.path / "m/1/model.py").read_text().replace("raise ValueError('no weights')", "pass")
    (repository.path / "m/1/model.py").write_text(add_source)
    assert await value(plane, "m", 4.0) == 4.0


async def test_the_least_recently_used_gives_way(repository, serve_on_demand, monkeypatch):
    uses = count(1)
    for module in (statistics_module, loads_module):
        monkeypatch.setattr(module, "time_ns", lambda: next(uses) * 1_000_000)
    for name in "abc":
        add(repository, name)
    plane = await serve_on_demand(limit=2 * SIZE)
    await value(plane, "a")
    await value(plane, "b")
    await value(plane, "a")
    await value(plane, "c")
    assert await states(plane) == {"a:1": "READY", "b:1": "UNAVAILABLE", "c:1": "READY"}
    assert plane.on_demand.evictions == {"b": 1}
    assert plane.on_demand.used == 2 * SIZE
    assert plane.ready()
    assert await value(plane, "b", 5.0) == 5.0


@pytest.fixture
def slow_measure(monkeypatch):
    """Have models use twice the size of their files, which takes a while to measure."""

    async def measure(self: ModelMemory, model: str) -> None:
        await asyncio.sleep(0.2)

    monkeypatch.setattr(ModelMemory, "measure", measure)
    monkeypatch.setattr(ModelMemory, "of_model", lambda self, model: 2 * SIZE)


async def test_a_model_stays_until_those_that_waited_for_it_are_in(repository, serve_on_demand, slow_measure):
    names = [f"m{number}" for number in range(3)]
    for name in names:
        add(repository, name)
    plane = await serve_on_demand(limit=2 * SIZE)
    async with asyncio.timeout(30):
        await asyncio.gather(*(value(plane, name) for name in names for _ in range(2)))
    assert plane.on_demand.loads == dict.fromkeys(names, 1)


async def test_one_that_demands_a_model_finds_it(repository, serve_on_demand, slow_measure):
    async def demanded(name: str) -> None:
        await plane.demand(name, "")
        plane.registry.find(name)

    for name in "abc":
        add(repository, name)
    plane = await serve_on_demand(limit=2 * SIZE)
    async with asyncio.timeout(30):
        await asyncio.gather(*(demanded(name) for name in "abc" for _ in range(2)))


async def test_a_model_that_is_unloaded_before_its_load_is_over_is_loaded_again(
    repository, serve_on_demand, slow_measure
):
    add(repository, "m")
    plane = await serve_on_demand()
    waiting = asyncio.create_task(value(plane, "m", 1.0))
    await until(lambda: plane.on_demand.loads["m"] == 1)
    await plane.unload("m", False)
    assert await waiting == 1.0
    assert plane.on_demand.loads == {"m": 2}


async def test_the_steps_of_an_ensemble_that_is_being_loaded_stay(repository, serve_on_demand, gate):
    add(repository, "a")
    add(repository, "b", initialize=gate.code)
    add(repository, "m")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve_on_demand(limit=3 * SIZE + 10_000)
    composed = asyncio.create_task(infer(plane, ask("e", 1.0)))
    await gate.reached()
    other = asyncio.create_task(value(plane, "m", 2.0))
    await asyncio.sleep(0.3)
    assert (await states(plane))["a:1"] == "READY"
    gate.open()
    await composed
    assert await other == 2.0


async def test_one_that_gives_up_does_not_fail_the_others(repository, serve_on_demand, gate):
    add(repository, "m", initialize=gate.code)
    plane = await serve_on_demand()
    gone = [asyncio.create_task(plane.demand("m", "")) for _ in range(2)]
    await gate.reached()
    waiting = asyncio.create_task(value(plane, "m", 2.0))
    await until(lambda: len(plane.on_demand.waiters) == 3)
    gone[0].cancel()
    plane.on_demand.waiters.wake("m", ServingError(ErrorKind.INTERNAL, "broken"))
    with pytest.raises(ServingError, match="broken"):
        await gone[1]
    with pytest.raises(ServingError, match="broken"):
        await waiting
    gate.open()
    await settled(plane)


async def test_what_a_client_has_loaded_stays(repository, serve_on_demand):
    add(repository, "pinned")
    add(repository, "m")
    plane = await serve_on_demand(limit=SIZE)
    await plane.load("pinned", None, {})
    with pytest.raises(ServingError) as caught:
        await value(plane, "m")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert "model 'm' is not loaded: it needs 100000 bytes, and of the 100000 that --model-memory-limit" in str(
        caught.value
    )
    assert "'pinned' cannot give way: loaded by name, or in use" in caught.value.message
    assert (await states(plane))["pinned:1"] == "READY"


async def test_a_model_with_open_requests_stays_until_they_end(repository, serve_on_demand, gate):
    add(repository, "busy", execute=f"y = x; {gate.code}")
    add(repository, "m")
    plane = await serve_on_demand(limit=SIZE)
    slow = asyncio.create_task(infer(plane, ask("busy", 7.0)))
    await gate.reached()
    waiting = asyncio.create_task(value(plane, "m", 8.0))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    assert (await states(plane))["busy:1"] == "READY"
    gate.open()
    assert float((await slow).outputs[0].array[0, 0]) == 7.0
    assert await waiting == 8.0
    await settled(plane)
    assert await states(plane) == {"busy:1": "UNAVAILABLE", "m:1": "READY"}


async def test_it_waits_no_longer_than_it_may(repository, serve_on_demand, gate):
    add(repository, "busy", execute=f"y = x; {gate.code}")
    add(repository, "m")
    plane = await serve_on_demand(limit=SIZE, wait=0.3)
    await plane.registry.load("busy", None, {}, on_demand=True)
    slow = asyncio.create_task(infer(plane, ask("busy")))
    await gate.reached()
    with pytest.raises(ServingError, match=r"has waited 0\.3 s for it to be loaded|'busy' cannot give way"):
        await value(plane, "m")
    gate.open()
    await slow


async def test_a_timeout_of_the_request_holds(repository, serve_on_demand, gate):
    add(repository, "m", initialize=gate.code)
    plane = await serve_on_demand()
    with pytest.raises(ServingError, match="Request timeout expired"):
        await infer(plane, ask("m", timeout_us=100_000))
    gate.open()
    assert await value(plane, "m", 2.0) == 2.0


async def test_an_ensemble_and_its_steps_come_and_go_together(repository, serve_on_demand):
    for name in "abm":
        add(repository, name)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve_on_demand(limit=2 * SIZE + 10_000)
    await infer(plane, ask("e", 1.0))
    assert {name for name, state in (await states(plane)).items() if state == "READY"} == {"a:1", "b:1", "e:1"}
    await value(plane, "m")
    ready = {name for name, state in (await states(plane)).items() if state == "READY"}
    assert "m:1" in ready
    assert "e:1" not in ready
    await infer(plane, ask("e", 1.0))


async def test_a_client_that_leaves_while_it_waits(repository, serve_on_demand, gate):
    add(repository, "m", initialize=gate.code)
    plane = await serve_on_demand()
    leaving = asyncio.create_task(single_response(plane, ask("m")))
    await gate.reached()
    assert len(plane.on_demand.waiters) == 1
    leaving.cancel()
    await until(lambda: len(plane.on_demand.waiters) == 0)
    gate.open()
    assert await value(plane, "m", 2.0) == 2.0


async def test_a_server_that_ends_refuses_those_that_wait(repository, serve_on_demand, gate):
    add(repository, "m", initialize=gate.code)
    plane = await serve_on_demand()
    waiting = asyncio.create_task(infer(plane, ask("m")))
    await gate.reached()
    plane.stop_accepting()
    with pytest.raises(ServingError, match="Server is stopping"):
        await waiting
    gate.open()


async def test_a_model_that_calls_another_loads_it(repository, serve_on_demand):
    add(repository, "inner")
    call = """
    response = pb_utils.InferenceRequest(
        model_name="inner", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x)]
    ).exec()
    y = pb_utils.get_output_tensor_by_name(response, "Y").as_numpy()
    """
    add(repository, "outer", execute=call)
    plane = await serve_on_demand()
    assert await value(plane, "outer", 6.0) == 6.0
    assert plane.on_demand.loads == {"outer": 1, "inner": 1}


async def test_a_decoupled_model_needs_an_endpoint_that_streams(repository, serve_on_demand):
    add(repository, "m", config=CONFIG + "model_transaction_policy { decoupled: true }")
    plane = await serve_on_demand()
    with pytest.raises(ServingError, match="doesn't support models with decoupled transaction policy"):
        await value(plane, "m")


async def test_a_model_with_an_open_sequence_stays_until_it_ends(repository, serve_on_demand):
    sequences = "sequence_batching { max_sequence_idle_microseconds: 60000000 direct { } }"
    add(repository, "stateful", config=CONFIG.replace("dynamic_batching { }", sequences))
    add(repository, "m")
    plane = await serve_on_demand(limit=SIZE)
    await infer(plane, ask("stateful", 1.0, sequence_id=5, sequence_start=True))
    waiting = asyncio.create_task(value(plane, "m", 8.0))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert (await states(plane))["stateful:1"] == "READY"
    await infer(plane, ask("stateful", 2.0, sequence_id=5, sequence_end=True))
    assert await waiting == 8.0
    assert (await states(plane))["stateful:1"] == "UNAVAILABLE"
