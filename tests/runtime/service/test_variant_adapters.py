"""Adapters of a model with variants: loaded into the variants that take them, which answer the requests for them."""

import asyncio
import json

import pytest
from tests.runtime.service.conftest import reason, states
from tests.runtime.service.lora_models import ROUTED, add_adapter, ask, last, text, vllm
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError

__all__ = ["vllm"]
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("vllm")]


def add_variant(repository, name: str, **arguments: object) -> None:
    repository.write(name, {"1/model.json": json.dumps({"model": "tiny", **arguments})}, 'backend: "vllm"')


def add_routed(repository, *variants: tuple[str, int | None]) -> None:
    listed = [{"model": name, **({"maxConcurrency": limit} if limit is not None else {})} for name, limit in variants]
    repository.write("chat", {"1/.keep": ""}, ROUTED.format(json.dumps({"variants": listed})))


def answered(plane) -> dict[str, int]:
    """Return the requests that each variant was sent by the routed model."""
    return {slot.name: slot.requests for slot in plane.registry.find("chat").runner.slots}


async def endless(plane, name: str):
    """Begin a request that ends only when it is cancelled, and return its task."""
    before = plane.registry.find("chat").running
    task = asyncio.ensure_future(last(plane, ask(name, text_input="\0")))
    await until(lambda: plane.registry.find("chat").running > before)
    return task


async def test_every_variant_gets_an_adapter_and_the_crossover_holds_for_its_requests(repository, serve):
    for name in ("few", "many"):
        add_variant(repository, name, enable_lora=True, max_loras=4)
    add_routed(repository, ("few", 1), ("many", None))
    add_adapter(repository, "one", base="chat")
    plane = await serve()
    await plane.load("one", None, {})
    assert await states(plane) == {"chat:1": "READY", "few:1": "READY", "many:1": "READY", "one:1": "READY"}
    assert await text(plane, "one") == "one"
    assert answered(plane) == {"few": 1, "many": 0}
    running = await endless(plane, "one")
    assert await text(plane, "one") == "one"
    assert answered(plane) == {"few": 2, "many": 1}
    running.cancel()
    add_adapter(repository, "two", base="chat")
    await plane.load("two", None, {})
    assert await text(plane, "chat", lora="two") == "two"
    await plane.unload("two", unload_dependents=False)
    await plane.registry._retirement.finished()
    with pytest.raises(ServingError, match="model 'chat' has no adapter 'two'; it has one") as refused:
        await text(plane, "chat", lora="two")
    assert refused.value.kind is ErrorKind.NOT_FOUND
    assert await text(plane, "one") == "one"


async def test_requests_for_an_adapter_go_to_the_variants_that_hold_it(repository, serve):
    add_variant(repository, "plain")
    add_variant(repository, "taker", enable_lora=True)
    add_routed(repository, ("plain", 100), ("taker", None))
    add_adapter(repository, "one", base="chat")
    plane = await serve()
    await plane.load("one", None, {})
    assert (await states(plane))["one:1"] == "READY"
    assert await reason(plane, "one") == (
        "variants without it, which get no requests for it: plain: model 'plain' was opened without LoRA: load it with "
        "an adapter or the parameter enable_lora"
    )
    assert [await text(plane, name) for name in ("one", "one", "chat")] == ["one", "one", "abc"]
    assert await text(plane, "chat", lora="one") == "one"
    assert answered(plane) == {"plain": 1, "taker": 3}
    await plane.unload("taker", unload_dependents=False)
    assert (await states(plane))["one:1"] == "UNAVAILABLE"
    assert "no variant has adapter 'one': 'plain': model 'plain' was opened without LoRA" in await reason(plane, "one")
    assert await text(plane, "chat") == "abc"
    await plane.load("taker", None, {})
    assert await text(plane, "one") == "one"


async def test_a_variant_that_comes_later_gets_the_adapters(repository, serve):
    for name in ("few", "many"):
        add_variant(repository, name, enable_lora=True)
    add_routed(repository, ("few", 1), ("many", None))
    add_adapter(repository, "one", base="chat")
    plane = await serve()
    await plane.load("one", None, {})
    await plane.unload("few", unload_dependents=False)
    assert await text(plane, "one") == "one"
    assert answered(plane) == {"few": 0, "many": 1}
    await plane.load("few", None, {})
    assert await text(plane, "one") == "one"
    add_variant(repository, "third", enable_lora=True)
    add_routed(repository, ("third", 1), ("many", None))
    await plane.load("third", None, {})
    await plane.load("chat", None, {})
    await until(lambda: plane.registry.find("third").holds_adapter("one"))
    assert await text(plane, "one") == "one"
    assert answered(plane)["third"] == 1


async def test_an_adapter_that_no_variant_takes_says_why(repository, serve):
    for name in ("few", "many"):
        add_variant(repository, name, enable_lora=True)
    add_routed(repository, ("few", 1), ("many", None))
    add_adapter(repository, "one", base="chat", complete=False)
    plane = await serve()
    with pytest.raises(ServingError, match=r"adapter_config\.json"):
        await plane.load("one", None, {})
    assert await text(plane, "chat") == "abc"
    with pytest.raises(ServingError, match="'one'"):
        await text(plane, "one")


async def test_an_alias_divides_requests_among_adapters_of_a_routed_model(repository, serve):
    for name in ("few", "many"):
        add_variant(repository, name, enable_lora=True, max_loras=4)
    add_routed(repository, ("few", 1), ("many", None))
    for name in ("one", "two"):
        add_adapter(repository, name, base="chat")
    weights = [{"model": "one", "weight": 1}, {"model": "two", "weight": 1}]
    repository.write("alias", {"1/.keep": ""}, ROUTED.format(json.dumps({"variants": weights})))
    plane = await serve()
    await plane.load("alias", None, {})
    assert sorted([await text(plane, "alias") for _ in range(4)]) == ["one", "one", "two", "two"]
    assert await reason(plane, "alias") == ""
