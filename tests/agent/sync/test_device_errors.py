"""A GPU that does not work: the agent tells its errors from other failures, and how often in a row they came."""

import httpx
import pytest
from tests.agent.conftest import FakeControl
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadState
from argosy_agent.sync.control import Control, RefusedError
from argosy_runtime.shared.crash_loops import on_trial, resting

ECC = "CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (f"RuntimeError: {ECC}", FailureKind.DEVICE),
        ("CUDA failure 100: no CUDA-capable device is detected ; GPU=0", FailureKind.DEVICE),
        ("CUDA error: out of memory", FailureKind.LOAD),
        ("model.onnx holds no graph", FailureKind.LOAD),
    ],
)
async def test_a_load_that_fails_for_the_device_says_so_and_how_often(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, words: str, kind: FailureKind
) -> None:
    async def load(fake: FakeControl, name: str) -> None:
        raise RefusedError(f"failed to load '{name}' version 1: {words}")

    monkeypatch.setattr(FakeControl, "load", load)
    model = bench.model("m", v1=bench.source("a", "one"))
    for attempt in (1, 2, 3):
        await bench.settle(model)
        bench.now += 60.0
        (told,) = bench.agent.ledger.loaded()
        assert (told.state, told.failure) == (LoadState.UNAVAILABLE, kind)
        assert told.attempts == (attempt if kind is FailureKind.DEVICE else 0)
        assert words in told.reason


@pytest.mark.parametrize(
    ("state", "reason", "kind"),
    [
        (LoadState.UNAVAILABLE, resting(3, f"its process met a device error: {ECC}"), FailureKind.DEVICE),
        (LoadState.UNAVAILABLE, f"failed to load: {ECC}", FailureKind.DEVICE),
        (LoadState.READY, on_trial(3), FailureKind.CRASH),
        (LoadState.READY, f"its config says {ECC}", None),
        (LoadState.UNAVAILABLE, "unloaded", None),
    ],
)
async def test_the_index_of_a_server_tells_device_errors(
    state: LoadState, reason: str, kind: FailureKind | None
) -> None:
    entry = {"name": "m", "version": "1", "state": str(state), "reason": reason}
    control = Control("http://server")
    control._client = httpx.AsyncClient(
        base_url="http://server", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=[entry]))
    )
    (told,) = await control.index()
    assert told.failure is kind
    assert told.lasts == (state is LoadState.READY and kind is None)
    await control.close()
