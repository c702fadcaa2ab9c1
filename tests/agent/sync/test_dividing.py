"""Weights of versions reach a server at once, whatever else is under way for their model."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.sync.bench import Bench
from tests.waiting import until
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract import RenderedModel, RenderedRepository
from argosy_agent.folder.traffic import traffic_of, with_traffic
from argosy_agent.sync.control import RefusedError, SlowError


def divided(model: RenderedModel, traffic: str) -> RenderedModel:
    """Return the model with these weights, as the operator renders them."""
    return replace(model, config_text=with_parameter(model.config_text, traffic), reload_key="one")


def with_parameter(text: str, traffic: str) -> str:
    config = text_format.Parse(text, ModelConfig())
    config.parameters["version_traffic"].string_value = traffic
    config.parameters["other"].string_value = "stays"
    return str(text_format.MessageToString(config))


def parameter(text: str) -> str:
    return str(text_format.Parse(text, ModelConfig()).parameters["version_traffic"].string_value)


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_parameter_is_replaced_in_a_text_and_nothing_else(before, after):
    text, other = with_parameter('name: "m"', before), with_parameter("", after)
    changed = with_traffic(text, traffic_of(other))
    expected = text_format.Parse(text, ModelConfig())
    expected.parameters["version_traffic"].string_value = after
    assert text_format.Parse(changed, ModelConfig()) == expected
    assert with_traffic(text, "") == text


def test_a_text_without_the_parameter_gets_it():
    assert parameter(with_traffic('name: "m"', traffic_of(with_parameter("", "w")))) == "w"
    assert traffic_of('name: "m"') == ""


def config_of(bench: Bench, name: str) -> Path:
    return bench.root / "server/repository" / name / "config.pbtxt"


async def test_weights_change_while_another_version_of_the_model_loads(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable, candidate, third = (bench.source(name, name) for name in ("a", "b", "c"))
    served = bench.model("m", v1=stable, v2=candidate)
    await bench.settle(divided(served, "5 percent"))
    load, go_on, loading = bench.fake.load, asyncio.Event(), asyncio.Event()

    async def slow(name: str) -> None:
        loading.set()
        await go_on.wait()
        await load(name)

    monkeypatch.setattr(bench.fake, "load", slow)
    more = bench.model("m", v1=stable, v2=candidate, v3=third)
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (divided(more, "5 percent"),)))
    await loading.wait()
    await bench.converge(RenderedRepository("server", (divided(more, "none"),)))
    await until(lambda: bench.fake.traffic.get("m") == "none")
    assert not go_on.is_set()
    go_on.set()
    await bench.settle(divided(more, "none"))
    assert bench.fake.loaded["m"].keys() == {1, 2, 3}
    assert parameter(config_of(bench, "m").read_text()) == "none"


async def test_a_version_that_cannot_load_does_not_bring_former_weights_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable = bench.source("a", "a")
    await bench.settle(divided(bench.model("m", v1=stable), "former"))
    load, go_on, loading = bench.fake.load, asyncio.Event(), asyncio.Event()
    texts: list[str] = []

    async def refuse(name: str) -> None:
        texts.append(parameter(config_of(bench, "m").read_text()))
        if len(texts) == 1:
            loading.set()
            await go_on.wait()
            raise RefusedError("broken")
        await load(name)

    monkeypatch.setattr(bench.fake, "load", refuse)
    more = divided(bench.model("m", v1=stable, v2=bench.source("b", "b")), "former")
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (more,)))
    await loading.wait()
    now = divided(bench.model("m", v1=stable), "now")
    await bench.converge(RenderedRepository("server", (now,)))
    await until(lambda: bench.fake.traffic.get("m") == "now")
    go_on.set()
    await until(lambda: not bench.agent.busy)
    assert parameter(config_of(bench, "m").read_text()) == "now", "it stands in what was put back"
    await bench.settle(now)
    assert set(texts[1:]) == {"now"}


async def test_weights_are_sent_again_to_a_server_that_did_not_answer_and_never_twice_else(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "a"))
    await bench.settle(divided(model, "first"))
    assert "divide m" not in bench.fake.calls, "its first weights come with its load"
    bench.fake.gone = True
    await bench.converge(RenderedRepository("server", (divided(model, "second"),)))
    await until(lambda: not bench.agent.busy)
    bench.fake.gone = False
    await bench.settle(divided(model, "second"))
    assert bench.fake.traffic == {"m": "second"}
    requested = bench.fake.calls.count("divide m")
    await bench.settle(divided(model, "second"))
    assert bench.fake.calls.count("divide m") == requested


async def test_weights_do_not_wait_for_a_storage(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bench.model("m", v1=bench.source("a", "a"))
    await bench.settle(divided(model, "former"))
    answered = asyncio.Event()

    async def silent(desired: RenderedRepository) -> None:
        await answered.wait()

    monkeypatch.setattr(bench.agent._keys, "look", silent)
    aiming = asyncio.create_task(bench.agent.aim(RenderedRepository("server", (divided(model, "now"),))))
    await until(lambda: bench.fake.traffic.get("m") == "now")
    assert not aiming.done()
    answered.set()
    await aiming


async def test_an_agent_that_starts_takes_back_weights_of_which_no_load_is_on_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "a"))
    await bench.settle(divided(model, "former"))

    async def silent(desired: RenderedRepository) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.agent._keys, "look", silent)
    aiming = asyncio.create_task(bench.agent.aim(RenderedRepository("server", (divided(model, "now"),))))
    await until(lambda: bench.fake.traffic.get("m") == "now" and not bench.agent.busy)
    aiming.cancel()
    bench.agent = bench.new_agent()
    await bench.settle(divided(model, "former"))
    assert bench.fake.traffic["m"] == "former"


async def test_weights_that_a_server_took_over_without_an_answer_in_time_are_taken_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "a"))
    await bench.settle(divided(model, "former"))
    divide, answering = bench.fake.divide, asyncio.Event()

    async def slow(name: str) -> None:
        await divide(name)
        if not answering.is_set():
            raise SlowError("no answer in time")

    async def silent(desired: RenderedRepository) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.fake, "divide", slow)
    with monkeypatch.context() as storage:
        storage.setattr(bench.agent._keys, "look", silent)
        aiming = asyncio.create_task(bench.agent.aim(RenderedRepository("server", (divided(model, "now"),))))
        await until(lambda: bench.fake.traffic.get("m") == "now" and not bench.agent.busy)
        aiming.cancel()
    answering.set()
    await bench.settle(divided(model, "former"))
    assert bench.fake.traffic["m"] == "former"
