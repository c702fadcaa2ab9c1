"""Requests without a version are divided by weight, and weights change under load: nothing is loaded, nothing lost."""

import asyncio
import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, single_response, states, value
from tests.waiting import until

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import ServingError
from argosy_runtime.modelconfig import parse_text, to_json
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER
from argosy_runtime.repository.folders import layout
from argosy_runtime.repository.options import ControlMode
from argosy_runtime.scheduling.traffic.split import Chosen

ALL = "version_policy { all {} }\n"


def traffic(weights: dict[int, int], **others: object) -> str:
    """Return the text of a configuration with these weights, in percent."""
    document = json.dumps({"weights": {str(v): percent * 10_000 for v, percent in weights.items()}, **others})
    text = document.replace('"', '\\"')
    return f'parameters {{ key: "{PARAMETER}" value {{ string_value: "{text}" }} }}\n'


def add(repository, weights: dict[int, int], versions: int = 2, name: str = "m", **others: object) -> None:
    """Write a model whose versions answer their own number."""
    for version in range(1, versions + 1):
        repository.add(name, execute=f"y = x * 0 + {version}", config=config(weights, **others), version=version)


def config(weights: dict[int, int], **others: object) -> str:
    return CONFIG + ALL + (traffic(weights, **others) if weights else "")


def divide(repository, weights: dict[int, int], name: str = "m", **others: object) -> None:
    (repository.path / name / "config.pbtxt").write_text(config(weights, **others))


async def versions_of(plane: DataPlane, count: int, name: str = "m") -> Counter[int]:
    """Return which versions answer so many requests."""
    return Counter([int(await value(plane, name)) for _ in range(count)])


async def test_requests_without_a_version_are_divided_exactly_and_a_named_version_is_obeyed(repository, serve):
    add(repository, {1: 90, 2: 10})
    plane = await serve()
    await plane.load("m", None, {})
    assert await versions_of(plane, 40) == {1: 36, 2: 4}
    assert [await value(plane, "m", version=version) for version in ("1", "2")] == [1, 2]
    response = await infer(plane, ask("m"))
    assert response.model_version == "1"


async def test_weights_change_without_a_load_while_requests_come(repository, serve):
    add(repository, {1: 100, 2: 0})
    plane = await serve()
    await plane.load("m", None, {})
    loaded = [plane.registry.find("m", version) for version in ("1", "2")]
    stop = asyncio.Event()
    answers: list[float] = []

    async def client() -> None:
        while not stop.is_set():
            answers.append(await value(plane, "m"))

    clients = [asyncio.create_task(client()) for _ in range(8)]
    for percent in (5, 50, 100, 0):
        divide(repository, {1: 100 - percent, 2: percent})
        await plane.load("m", None, {})
        begun = len(answers)
        await until(lambda begun=begun: len(answers) > begun + 40)
    stop.set()
    await asyncio.gather(*clients)
    assert set(answers) == {1.0, 2.0}
    assert [plane.registry.find("m", version) for version in ("1", "2")] == loaded
    both = [served.statistics for served in loaded]
    assert sum(statistics.success.count for statistics in both) == len(answers)
    assert not any(statistics.fail.count for statistics in both)


async def test_the_highest_weight_stands_for_the_model(repository, serve):
    add(repository, {1: 60, 2: 40})
    plane = await serve()
    await plane.load("m", None, {})
    assert plane.registry.find("m").version == 1
    assert plane.model_metadata("m", "").versions == ["1", "2"]
    assert plane.model_config("m", "") is plane.model_config("m", "1")
    assert plane.model_ready("m", "")
    divide(repository, {1: 40, 2: 60})
    await plane.load("m", None, {})
    assert plane.registry.find("m").version == 2
    assert await states(plane) == {"m:1": "READY", "m:2": "READY"}


async def test_without_the_parameter_the_latest_answers_as_before(repository, serve):
    add(repository, {})
    plane = await serve()
    await plane.load("m", None, {})
    assert await versions_of(plane, 10) == {2: 10}
    divide(repository, {1: 100})
    await plane.load("m", None, {})
    assert await versions_of(plane, 10) == {1: 10}
    divide(repository, {})
    await plane.load("m", None, {})
    assert await versions_of(plane, 10) == {2: 10}


async def test_a_change_of_weights_does_not_wait_for_a_version_that_loads(repository, serve, gate):
    """Neither one of the same model, nor the load that the change comes with."""
    add(repository, {1: 50, 2: 50})
    plane = await serve()
    await plane.load("m", None, {})
    repository.add("m", initialize=gate.code, execute="y = x * 0 + 3", config=config({1: 50, 2: 50}), version=3)
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    divide(repository, {1: 0, 2: 0, 3: 100})
    changing = [asyncio.create_task(plane.load("m", None, {}))]
    divide(repository, {1: 100, 2: 0})
    changing.append(asyncio.create_task(plane.load("m", None, {})))
    split = plane.registry.records["m"].split
    await until(lambda: split.traffic.weights == {1: 1_000_000, 2: 0})
    assert await versions_of(plane, 20) == {1: 20}
    assert not loading.done()
    gate.open()
    await loading
    assert await versions_of(plane, 20) == {1: 20}, "a load that began earlier does not bring its weights back"
    await asyncio.gather(*changing)
    assert await versions_of(plane, 20) == {1: 20}
    assert (await states(plane))["m:3"] == "READY"


async def test_a_version_that_is_not_loaded_loses_its_share_to_the_others(repository, serve):
    add(repository, {1: 90, 7: 10})
    plane = await serve()
    await plane.load("m", None, {})
    assert await versions_of(plane, 20) == {1: 20}


async def test_a_version_that_fails_to_load_keeps_nothing_from_being_divided(repository, serve):
    add(repository, {1: 100})
    plane = await serve()
    await plane.load("m", None, {})
    repository.add("m", "raise ValueError('broken')", config=config({1: 50, 2: 50}), version=3)
    with pytest.raises(ServingError, match="broken"):
        await plane.load("m", None, {})
    assert await versions_of(plane, 20) == {1: 10, 2: 10}


async def test_a_wrong_parameter_is_refused_and_the_weights_stay(repository, serve):
    add(repository, {1: 100})
    plane = await serve()
    await plane.load("m", None, {})
    divide(repository, {1: 50, 2: 20})
    with pytest.raises(ServingError, match="the weights add up to 700000; they are millionths"):
        await plane.load("m", None, {})
    assert await versions_of(plane, 10) == {1: 10}


async def test_a_version_that_is_taken_away_never_gets_the_requests_of_the_latest(repository, serve):
    """Back from version 2: the parameter and the version go in one load, and version 2 is on its way out."""
    add(repository, {1: 100, 2: 0})
    plane = await serve()
    await plane.load("m", None, {})
    stop = asyncio.Event()
    answers: list[float] = []

    async def client() -> None:
        while not stop.is_set():
            answers.append(await value(plane, "m"))

    asking = asyncio.create_task(client())
    text = CONFIG + "version_policy { specific { versions: [ 1 ] } }"
    (repository.path / "m" / "config.pbtxt").write_text(text)
    await plane.load("m", None, {})
    begun = len(answers)
    await until(lambda: len(answers) > begun + 5)
    stop.set()
    await asking
    assert set(answers) == {1.0}


async def test_a_model_is_unloaded_with_its_weights(repository, serve):
    add(repository, {1: 100})
    plane = await serve()
    await plane.load("m", None, {})
    await plane.unload("m", False)
    divide(repository, {})
    await plane.load("m", None, {})
    assert await versions_of(plane, 4) == {2: 4}


async def test_requests_with_a_sequence_or_a_parameter_keep_their_version(repository, serve):
    add(repository, {1: 50, 2: 50}, sticky=[{"parameter": "user"}])
    plane = await serve()
    await plane.load("m", None, {})
    for fields in ({"sequence_id": 4}, {"parameters": {"user": "ann"}}, {"sequence_id": "s", "sequence_start": True}):
        answers = {float((await infer(plane, ask("m", **fields))).outputs[0].array[0, 0]) for _ in range(6)}
        assert len(answers) == 1
    users = [await infer(plane, ask("m", parameters={"user": f"u{number}"})) for number in range(20)]
    assert {response.model_version for response in users} == {"1", "2"}


async def test_a_version_whose_process_has_died_loses_its_share_until_it_is_back(repository, serve, tmp_path):
    stay = tmp_path / "stay"
    stay.touch()
    add(repository, {1: 50, 2: 50})
    execute = f"y = x * 0 + 2\nif x[0, 0] == 9: os.remove({str(stay)!r}); os._exit(1)"
    waits = f"[time.sleep(0.005) for _ in iter(lambda: os.path.exists({str(stay)!r}), True)]"
    repository.add("m", waits, execute, config({1: 50, 2: 50}), version=2)
    plane = await serve()
    await plane.load("m", None, {})
    assert (await single_response(plane, ask("m", 9, version="2"))).error is not None
    assert await versions_of(plane, 10) == {1: 10}
    assert plane.registry.find("m").version == 1
    stay.touch()
    await until(lambda: plane.registry.find("m", "2").takes_batches)
    assert await versions_of(plane, 10) == {1: 5, 2: 5}


async def test_counters_show_how_requests_were_divided(repository, serve):
    add(repository, {1: 75, 2: 25}, sticky=[{"parameter": "user"}])
    add(repository, {}, name="plain")
    plane = await serve()
    for name in ("m", "plain"):
        await plane.load(name, None, {})
    await versions_of(plane, 8)
    await value(plane, "m", version="2")
    await infer(plane, ask("m", parameters={"user": "ann"}))
    text = b"".join([part async for part in plane.metrics()]).decode()
    assert 'argosy_version_weight{model="m",version="1"} 0.75' in text
    assert 'argosy_version_requests_total{model="m",version="1",by="weight"} 6' in text
    assert 'argosy_version_requests_total{model="m",version="2",by="weight"} 2' in text
    keyed = [line for line in text.splitlines() if 'by="key"' in line and not line.endswith(" 0")]
    assert len(keyed) == 1
    assert not [line for line in text.splitlines() if "argosy_version" in line and "plain" in line]


async def test_a_running_models_calls_are_divided(repository, serve):
    add(repository, {1: 75, 2: 25})
    call = """
        x = pb_utils.Tensor("X", x)
        asked = pb_utils.InferenceRequest(model_name="m", requested_output_names=["Y"], inputs=[x])
        y = asked.exec().output_tensors()[0].as_numpy()
    """
    repository.add("caller", execute=call)
    plane = await serve()
    for name in ("m", "caller"):
        await plane.load(name, None, {})
    assert await versions_of(plane, 8, "caller") == {1: 6, 2: 2}


async def test_a_division_applies_while_a_load_of_the_model_runs(repository, serve, gate):
    add(repository, {1: 50, 2: 50})
    plane = await serve()
    await plane.load("m", None, {})
    repository.add("m", gate.code, "y = x * 0 + 3", config({1: 50, 2: 50}), version=3)
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    divide(repository, {1: 100, 2: 0})
    await plane.divide("m")
    assert await versions_of(plane, 10) == {1: 10}
    gate.open()
    await loading
    assert await versions_of(plane, 10) == {1: 10}
    assert [version for version, _ in plane.registry.records["m"].serving()] == [1, 2, 3]


@pytest.mark.parametrize("begin", [DataPlane.divide, lambda plane, name: plane.load(name, None, {})])
async def test_a_slow_read_of_former_weights_does_not_overrule_later_ones(repository, serve, monkeypatch, begin):
    add(repository, {1: 50, 2: 50})
    plane = await serve()
    await plane.load("m", None, {})
    read, was_read, go_on = layout.read_folder, threading.Event(), threading.Event()

    def slow(path: Path, config_name: str = "") -> layout.ModelFolder:
        folder = read(path, config_name)
        was_read.set()
        go_on.wait(30)
        return folder

    with monkeypatch.context() as slowed:
        slowed.setattr(layout, "read_folder", slow)
        former = asyncio.create_task(begin(plane, "m"))
        await until(was_read.is_set)
    divide(repository, {1: 100, 2: 0})
    await plane.divide("m")
    go_on.set()
    await former
    assert await versions_of(plane, 10) == {1: 10}


async def test_requests_that_cannot_be_divided_are_an_error_with_its_reason(repository, serve):
    add(repository, {1: 50, 2: 50})
    plane = await serve()
    with pytest.raises(ServingError, match="cannot divide the requests of model 'm': it is not loaded"):
        await plane.divide("m")
    await plane.load("m", None, {})
    divide(repository, {1: 10})
    with pytest.raises(ServingError, match="the weights add up to 100000"):
        await plane.divide("m")
    divide(repository, {})
    with pytest.raises(ServingError, match="the configuration of model 'm' has no parameter 'version_traffic'"):
        await plane.divide("m")
    assert await versions_of(plane, 4) == {1: 2, 2: 2}


async def test_a_server_that_polls_notices_other_weights(repository, serve):
    add(repository, {1: 50, 2: 50})
    plane = await serve(ControlMode.POLL)
    assert await versions_of(plane, 4) == {1: 2, 2: 2}
    loaded = plane.registry.find("m", "2")
    divide(repository, {1: 0, 2: 100})
    await plane.poll()
    assert await versions_of(plane, 4) == {2: 4}
    assert plane.registry.find("m", "2") is loaded


async def test_the_configuration_of_a_load_request_overrides_the_weights_of_the_file(repository, serve):
    add(repository, {1: 50, 2: 50})
    plane = await serve()
    await plane.load("m", None, {})
    own = json.dumps(to_json(parse_text(config({1: 0, 2: 100}), "m")))
    await plane.load("m", own, {})
    assert await versions_of(plane, 4) == {2: 4}
    await plane.divide("m")
    assert await versions_of(plane, 4) == {2: 4}, "the folder is the same, so the request's configuration stands"


async def test_requests_that_are_one_to_their_client_have_one_version_and_count_once(repository, serve):
    shadow = {"version": 2, "share": 1_000_000}
    add(repository, {1: 90, 2: 10}, shadow=shadow)
    plane = await serve()
    await plane.load("m", None, {})
    answers = []
    for _ in range(10):
        parts = [ask("m") for _ in range(3)]
        plane.pin(parts)
        answers.append({(await infer(plane, part)).model_version for part in parts})
    assert sorted(map(sorted, answers)) == [["1"]] * 9 + [["2"]]
    split = plane.registry.records["m"].split
    assert split.routed[Chosen.WEIGHT] == {1: 9, 2: 1}
    shadowed = plane.registry.find("m", "2").statistics
    await until(lambda: shadowed.shadow is not None and sum(shadowed.shadow.outcomes.values()) == 27)
