"""Adapters of a running model: loaded and unloaded without a restart, requested like models, each with its state."""

import asyncio
import json
import os
import signal

import pytest
from tests import lora_files
from tests.runtime.service.conftest import reason, settled, states
from tests.runtime.service.lora_models import ROUTED, add_adapter, add_base, ask, last, text, vllm
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import is_language_model

__all__ = ["vllm"]
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("vllm")]


async def pid(plane) -> int:
    """Return the process of the base model."""
    group = plane.registry.find("base")._dispatcher.group
    (number,) = group._ready
    return group.instance(number)._connection._process.pid


async def test_adapters_come_and_go_while_the_engine_runs(repository, serve):
    add_base(repository)
    for name in ("one", "two"):
        add_adapter(repository, name)
    plane = await serve()
    await plane.load("base", None, {})
    process = await pid(plane)
    await plane.load("one", None, {})
    assert (await text(plane, "base"), await text(plane, "one")) == ("abc", "one")
    with pytest.raises(ServingError, match="unknown model: 'two'"):
        await text(plane, "two")
    await plane.load("two", None, {})
    assert await asyncio.gather(*(text(plane, name) for name in ("two", "one", "base"))) == ["two", "one", "abc"]
    await plane.unload("one", unload_dependents=False)
    await settled(plane)
    assert (await states(plane))["one:1"] != "READY"
    with pytest.raises(ServingError, match="'one'"):
        await text(plane, "one")
    with pytest.raises(ServingError, match="no adapter 'one'"):
        await text(plane, "base", lora="one")
    assert await text(plane, "base", lora="two") == "two"
    assert await pid(plane) == process
    statistics = plane.registry.find("two").statistics
    assert (statistics.success.count, statistics.execution_count) == (1, 1)
    config = plane.model_config("two", "")
    assert (config.name, is_language_model(config)) == ("two", True)


async def test_an_adapter_loads_its_base_model_first(repository, serve):
    add_base(repository)
    add_adapter(repository, "one")
    plane = await serve()
    await plane.load("one", None, {})
    assert await states(plane) == {"base:1": "READY", "one:1": "READY"}


async def test_adapters_are_loaded_into_an_engine_that_replaces_another(repository, serve):
    add_base(repository)
    add_adapter(repository, "one")
    plane = await serve()
    await plane.load("one", None, {})
    process = await pid(plane)
    os.kill(process, signal.SIGKILL)
    group = plane.registry.find("base")._dispatcher.group
    await until(lambda: not group.takes_batches)
    await until(lambda: group.takes_batches)
    assert await text(plane, "one") == "one"
    add_base(repository, max_loras=2)
    await plane.load("base", None, {})
    assert await pid(plane) != process
    assert await text(plane, "one") == "one"
    await plane.unload("base", unload_dependents=False)
    assert (await states(plane))["one:1"] == "UNAVAILABLE"
    assert await reason(plane, "one") == "the base model of adapter 'one' is not loaded"
    await plane.load("base", None, {})
    assert await text(plane, "one") == "one"


@pytest.mark.parametrize(
    ("base", "complete", "message"),
    [
        ("missing", True, "the base model 'missing' of adapter 'one' is not loaded|failed to load 'missing'"),
        ("base", False, "adapter_config.json"),
        ("plain", True, "model 'plain' takes no adapters: it has no input 'lora_name' or 'sampling_parameters'"),
    ],
)
async def test_an_adapter_that_does_not_fit_says_why_and_leaves_its_base(repository, serve, base, complete, message):
    add_base(repository)
    repository.add("plain")
    add_adapter(repository, "one", base, complete=complete)
    plane = await serve()
    await plane.load("base", None, {})
    with pytest.raises(ServingError, match=message):
        await plane.load("one", None, {})
    assert await text(plane, "base") == "abc"
    with pytest.raises(ServingError, match="'one'") as failure:
        await text(plane, "one")
    assert failure.value.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE)


async def test_an_adapter_whose_files_changed_is_loaded_again(repository, serve):
    add_base(repository)
    add_adapter(repository, "one")
    plane = await serve()
    await plane.load("one", None, {})
    await plane.load("one", None, {})
    await plane.registry._retirement.finished()
    assert await text(plane, "one") == "one"


async def test_nothing_waits_for_a_request_that_never_ends(repository, serve):
    add_base(repository)
    for name in ("one", "two"):
        add_adapter(repository, name)
    plane = await serve()
    await plane.load("one", None, {})
    process = await pid(plane)
    group = plane.registry.find("base")._dispatcher.group
    instance = group.instance(next(iter(group._ready)))
    endless = {"text_input": "\0", "sampling_parameters": json.dumps({"lora_name": "one"})}
    stream = asyncio.ensure_future(last(plane, ask("base", **endless)))
    await until(lambda: plane.registry.find("base").running)
    await plane.unload("one", unload_dependents=False)
    await settled(plane)
    await plane.load("two", None, {})
    assert await text(plane, "two") == "two"
    assert not instance._managed
    stream.cancel()
    await plane.unload("base", unload_dependents=False)
    await settled(plane)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_request_names_one_adapter(repository, serve):
    add_base(repository)
    add_adapter(repository, "one")
    plane = await serve()
    await plane.load("one", None, {})
    assert await text(plane, "one", lora="one") == "one"
    with pytest.raises(ServingError, match="names another adapter than the model 'one'"):
        await text(plane, "one", lora="two")


async def test_an_alias_divides_requests_by_weight_in_a_fixed_order(repository, serve):
    add_base(repository)
    for name in ("one", "two"):
        add_adapter(repository, name)
    weights = [{"model": "one", "weight": 3}, {"model": "two", "weight": 1}]
    repository.write("alias", {"1/.keep": ""}, ROUTED.format(json.dumps({"variants": weights})))
    plane = await serve()
    await plane.load("alias", None, {})
    answers = [await text(plane, "alias") for _ in range(8)]
    assert answers == ["one", "one", "two", "one"] * 2
    await plane.unload("one", unload_dependents=False)
    assert [await text(plane, "alias") for _ in range(2)] == ["two", "two"]


BOTH = "version_policy { all {} } "
ADAPTER = 'backend: "adapter" parameters { key: "base" value { string_value: "%s" } }'


async def test_two_versions_of_an_adapter_answer_with_their_own_files(repository, serve):
    add_base(repository)
    for version in (1, 2):
        add_adapter(repository, "one", version=version)
        lora_files.write(repository.path / "one" / str(version), rank=8 * version)
    (repository.path / "one" / "config.pbtxt").write_text(BOTH + ADAPTER % "base")
    plane = await serve()
    await plane.load("one", None, {})
    table = plane.registry.find("base").adapters.loaded
    assert {name: adapter.path.name for name, adapter in table.items()} == {"one": "2", "one@1": "1"}
    for version, answer in (("1", "one@1"), ("2", "oneon")):
        request = ask("one", sampling_parameters=json.dumps({"max_tokens": 5, "lora_name": "one"}))
        request.model_version = version
        response = await last(plane, request)
        assert response.outputs[0].array.ravel()[0].decode() == answer
        assert (response.model_name, response.model_version) == ("one", version)
    assert await text(plane, "base", lora="one") == "one"
    (repository.path / "one" / "config.pbtxt").write_text(ADAPTER % "base")
    await plane.load("one", None, {})
    await settled(plane)
    assert {name: adapter.path.name for name, adapter in table.items()} == {"one": "2"}
    assert await text(plane, "one") == "one"


async def test_a_version_of_an_adapter_has_a_base_model_of_its_own(repository, serve):
    add_base(repository)
    (repository.path / "base").rename(repository.path / "other")
    add_base(repository)
    for version in (1, 2):
        add_adapter(repository, "one", version=version)
    (repository.path / "one" / "config.pbtxt").write_text(BOTH + ADAPTER % "base")
    (repository.path / "one" / "2" / "argosy.pbtxt").write_text(ADAPTER % "other")
    plane = await serve()
    await plane.load("one", None, {})
    loaded = {base: plane.registry.find(base).adapters.loaded for base in ("base", "other")}
    assert {base: [adapter.path.name for adapter in table.values()] for base, table in loaded.items()} == {
        "base": ["1"],
        "other": ["2"],
    }
    assert [plane.model_config("one", version).parameters["base"].string_value for version in ("1", "2")] == [
        "base",
        "other",
    ]
