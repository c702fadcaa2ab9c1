"""A GPU that does not work: the agent reports its errors apart from other failures, with how many came in a row."""

import httpx
import pytest
from tests.agent.conftest import FakeControl
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadState
from argosy_agent.sync.control import Control, RefusedError
from argosy_common.crash_loops import on_trial, resting
from argosy_common.device_errors import signed

ECC = "CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (signed(f"RuntimeError: {ECC}", ECC), FailureKind.DEVICE),
        (f"RuntimeError: {ECC}", FailureKind.LOAD),
        ("CUDA error: out of memory", FailureKind.LOAD),
        ("model.onnx holds no graph", FailureKind.LOAD),
    ],
)
async def test_a_load_that_fails_for_the_device_says_so_and_how_often(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, words: str, kind: FailureKind
) -> None:
    async def load(fake: FakeControl, name: str) -> None:
        raise RefusedError(f"load failed for model '{name}': version 1 is at UNAVAILABLE state: Internal: {words};\n")

    monkeypatch.setattr(FakeControl, "load", load)
    model = bench.model("m", v1=bench.source("a", "one"))
    for attempt in (1, 2, 3):
        await bench.settle(model)
        bench.now += 60.0
        (reported,) = bench.agent.ledger.loaded()
        assert (reported.state, reported.failure) == (LoadState.UNAVAILABLE, kind)
        assert reported.attempts == (attempt if kind is FailureKind.DEVICE else 0)
        assert words in reported.reason


@pytest.mark.parametrize(
    ("state", "reason", "kind"),
    [
        (LoadState.UNAVAILABLE, resting(3, signed("its process ended", ECC)), FailureKind.DEVICE),
        (LoadState.UNAVAILABLE, resting(3, f"its process ended: {ECC}"), FailureKind.CRASH),
        (LoadState.UNAVAILABLE, signed("failed to load", ECC), FailureKind.DEVICE),
        (LoadState.UNAVAILABLE, f"failed to load: {ECC}", None),
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
    (reported,) = await control.index()
    assert reported.failure is kind
    assert reported.lasts == (state is LoadState.READY and kind is None)
    await control.close()
