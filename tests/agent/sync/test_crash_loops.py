"""A model that loads and ends again and again: the server starts it, and the agent says so."""

from dataclasses import replace

import httpx
import pytest
from tests.agent.conftest import FakeControl
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadedModel, LoadState
from argosy_agent.contract.documents import AgentState, parse_state, state_text
from argosy_agent.sync.control import Control
from argosy_common.crash_loops import on_trial, resting


def crashing(state: LoadState, version: int = 1) -> LoadedModel:
    """Return a server's report of `m` in a crash loop."""
    reason = on_trial(3) if state is LoadState.READY else resting(3, "its process exited with code 4")
    return LoadedModel("m", version, state, reason, FailureKind.CRASH)


def with_device_errors() -> LoadedModel:
    """Return the same where each end was a device error: the server goes on starting it by itself."""
    reason = resting(3, "its process met a device error, and was ended: CUDA error: unknown error")
    return LoadedModel("m", 1, LoadState.UNAVAILABLE, reason, FailureKind.DEVICE)


def report(bench: Bench, monkeypatch: pytest.MonkeyPatch, *result: LoadedModel) -> None:
    """Let the server's index report this from now on."""

    async def index(fake: FakeControl) -> tuple[LoadedModel, ...]:
        return result

    async def is_ready(fake: FakeControl, name: str, version: int) -> bool:
        return version not in {item.version for item in result}

    monkeypatch.setattr(FakeControl, "index", index)
    monkeypatch.setattr(FakeControl, "is_ready", is_ready)


@pytest.mark.parametrize("state", [LoadState.UNAVAILABLE, LoadState.READY])
async def test_the_index_of_a_server_tells_a_crash_loop(state: LoadState) -> None:
    reported = crashing(state)
    entry = {"name": "m", "version": "1", "state": str(state), "reason": reported.reason}
    control = Control("http://server")
    control._client = httpx.AsyncClient(
        base_url="http://server", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=[entry]))
    )
    assert await control.index() == (reported,)
    assert not reported.lasts
    await control.close()


@pytest.mark.parametrize(
    "message",
    [crashing(LoadState.UNAVAILABLE), crashing(LoadState.READY), with_device_errors()],
    ids=["resting", "on trial", "device"],
)
async def test_what_crashes_is_reported_and_not_loaded_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, message: LoadedModel
) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    report(bench, monkeypatch, message)
    for _ in range(3):
        await bench.settle(model)
        bench.now += 100.0
    assert bench.fake.calls == ["load m"]
    assert [replace(item, digest="") for item in bench.agent.ledger.loaded()] == [message]
    assert bench.agent.ledger.has_been_tried("m")


async def test_another_version_is_loaded_where_one_crashes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    report(bench, monkeypatch, crashing(LoadState.UNAVAILABLE))
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}


def test_a_crash_loop_passes_the_documents() -> None:
    state = AgentState(models=(crashing(LoadState.READY), crashing(LoadState.UNAVAILABLE, 2)))
    assert parse_state(state_text(state)).models == state.models
