"""Adapters that a model lists itself are models like those of a repository, and a name has one owner."""

import json
import logging

import pytest
from tests import lora_files
from tests.runtime.service.conftest import reason, settled, states, value
from tests.runtime.service.lora_models import ask, last, text, vllm

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.http.openai.catalog import Catalog

__all__ = ["vllm"]
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("vllm")]


def add_base(repository, *adapters: dict[str, object], name: str = "base", **files: str) -> None:
    """Write a model that lists adapters in its parameter, and others in a file."""
    listed = json.dumps(adapters).replace('"', '\\"')
    parameter = f'parameters {{ key: "adapters" value {{ string_value: "{listed}" }} }}' if adapters else ""
    arguments = json.dumps({"model": "tiny", "enable_lora": True, "max_loras": 4})
    repository.write(name, {"1/model.json": arguments, **files}, f'backend: "vllm" {parameter}')
    for adapter in ("one", "two", "three"):
        lora_files.write(repository.path / name / "1" / adapter)


async def named(plane) -> dict[str, str]:
    """Return what OpenAI's API lists: names with the models that they are adapters of."""
    return {served.named.name: served.named.parent for served in await Catalog(plane, lambda: 0).all()}


ONE, TWO = {"name": "one", "path": "one"}, {"name": "two", "path": "two"}


async def test_listed_adapters_are_models(repository, serve):
    file = {"1/multi_lora.json": '{"xyz": "three"}'}
    add_base(repository, {**ONE, "alias": "both"}, {**TWO, "alias": "both"}, **file)
    plane = await serve()
    await plane.load("base", None, {})
    assert await states(plane) == {f"{name}:1": "READY" for name in ("base", "both", "one", "two", "xyz")}
    assert await named(plane) == {"base": "", "both": "", "one": "base", "two": "base", "xyz": "base"}
    assert [await text(plane, name) for name in ("base", "one", "xyz")] == ["abc", "one", "xyz"]
    assert await text(plane, "base", lora="two") == "two"
    assert sorted([await text(plane, "both") for _ in range(2)]) == ["one", "two"]
    assert plane.registry.find("xyz").statistics.success.count == 1
    add_base(repository, TWO, **{"1/multi_lora.json": "{}"})
    await plane.load("base", None, {})
    await settled(plane)
    assert await named(plane) == {"base": "", "two": "base"}
    with pytest.raises(ServingError, match="has no adapter 'one'; it has two"):
        await text(plane, "base", lora="one")
    await plane.unload("base", unload_dependents=False)
    await settled(plane)
    assert await named(plane) == {}
    assert set((await states(plane)).values()) == {"UNAVAILABLE"}


async def test_an_adapter_that_does_not_load_is_unavailable_alone(repository, serve):
    add_base(repository, ONE, {"name": "bad", "path": "missing"})
    plane = await serve()
    await plane.load("base", None, {})
    assert await text(plane, "one") == "one"
    assert (await states(plane))["bad:1"] == "UNAVAILABLE"
    assert "adapter_config.json" in await reason(plane, "bad")
    await plane.load("base", None, {})
    assert "adapter_config.json" in await reason(plane, "bad")
    lora_files.write(repository.path / "base/1/missing")
    await plane.load("bad", None, {})
    assert await text(plane, "bad") == "bad"


async def test_a_real_model_owns_its_name_and_hides_an_adapter(repository, serve, caplog):
    add_base(repository, ONE, TWO)
    plane = await serve()
    await plane.load("base", None, {})
    catalog = Catalog(plane, lambda: 0)
    assert catalog.find("one").named.parent == "base"
    repository.add("one", execute="y = x * 2")
    with caplog.at_level(logging.WARNING, "argosy.repository"):
        await plane.load("one", None, {})
    await plane.registry._retirement.finished()
    assert "adapter 'one' of model 'base' is hidden by the model of that name; lora_name names it" in caplog.text
    assert await value(plane, "one", 3.0) == 6.0
    assert catalog.find("one") is None
    assert await named(plane) == {"base": "", "two": "base"}
    assert await text(plane, "base", lora="one") == "one"
    await plane.load("base", None, {})
    assert await value(plane, "one", 3.0) == 6.0
    await plane.unload("one", unload_dependents=False)
    await settled(plane)
    assert catalog.find("one").named.parent == "base"
    assert await text(plane, "one") == "one"
    await plane.unload("base", unload_dependents=False)
    await plane.load("one", None, {})
    await plane.load("base", None, {})
    assert await value(plane, "one", 3.0) == 6.0
    assert await text(plane, "base", lora="one") == "one"


async def test_an_adapter_that_a_client_unloads_stays_unloaded(repository, serve):
    add_base(repository, ONE, TWO)
    add_base(repository, ONE, name="other")
    plane = await serve()
    await plane.load("base", None, {})
    await plane.load("other", None, {})
    for _ in range(2):
        await plane.unload("one", unload_dependents=False)
        await settled(plane)
        assert (await states(plane))["one:1"] == "UNAVAILABLE"
        assert await named(plane) == {"base": "", "two": "base", "other": ""}
    await plane.load("one", None, {})
    assert await text(plane, "one") == "one"
    await plane.unload("one", unload_dependents=False)
    await plane.load("base", None, {})
    assert await named(plane) == {"base": "", "one": "base", "two": "base", "other": ""}
    await plane.unload("one", unload_dependents=False)
    await plane.unload("base", unload_dependents=False)
    await settled(plane)
    assert await named(plane) == {"other": ""}
    repository.add("one", execute="y = x * 2")
    await plane.load("one", None, {})
    assert await value(plane, "one", 3.0) == 6.0


async def test_of_two_models_with_one_adapters_name_the_first_has_it(repository, serve):
    add_base(repository, ONE)
    add_base(repository, ONE, name="other")
    plane = await serve()
    await plane.load("base", None, {})
    await plane.load("other", None, {})
    assert await named(plane) == {"base": "", "one": "base", "other": ""}
    assert await text(plane, "other", lora="one") == "one"
    await plane.unload("base", unload_dependents=False)
    await settled(plane)
    assert await named(plane) == {"one": "other", "other": ""}
    assert await text(plane, "one") == "one"


@pytest.mark.parametrize("backend", ["vllm", "python"])
async def test_a_wrong_list_fails_the_load(repository, serve, backend):
    zero = {**ONE, "alias": "x", "weight": 0}
    add_base(repository, zero)
    config = repository.path / "base/config.pbtxt"
    config.write_text(config.read_text().replace("vllm", backend))
    plane = await serve()
    with pytest.raises(ServingError, match="all adapters of alias 'x' have weight 0; raise one"):
        await plane.load("base", None, {})


async def test_a_backend_without_adapters_says_which_have_them(repository, serve):
    add_base(repository, ONE)
    tensors = """input [ { name: "sampling_parameters" data_type: TYPE_STRING dims: [ 1 ] } ]
        output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]"""
    config = (repository.path / "base/config.pbtxt").read_text().replace("vllm", "python")
    repository.add("base", config=f"{config}\n{tensors}")
    plane = await serve()
    await plane.load("base", None, {})
    await settled(plane)
    assert "backend 'python' takes no adapters: use backend vllm or tensorrtllm" in await reason(plane, "one")


async def test_an_adapter_whose_files_vanish_goes_on_until_it_is_loaded_again(repository, serve):
    add_base(repository, ONE, TWO)
    plane = await serve()
    await plane.load("base", None, {})
    (repository.path / "base/1/one/adapter_config.json").unlink()
    assert await text(plane, "one") == "one"
    group = plane.registry.find("base")._dispatcher.group
    with pytest.raises(ServingError, match=r"adapter 'one' has no '.*adapter_config\.json'"):
        await plane.load("one", None, {})
    assert [await text(plane, name) for name in ("one", "two")] == ["one", "two"]
    assert group.takes_batches
    response = await last(plane, ask("base"))
    assert response.error is None
    await plane.unload("one", unload_dependents=False)
    with pytest.raises(ServingError) as gone:
        await text(plane, "one")
    assert gone.value.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE)
