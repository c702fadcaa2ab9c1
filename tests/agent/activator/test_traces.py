"""The activator passes a client's trace context on with a request that has waited."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.agent.activator.standing import Standing, endpoint, standing
from tests.peers.argosy import argosy
from tests.peers.otlp import OtlpReceiver, receiving
from tests.peers.server import Server
from tests.waiting import until
from tritonclient.grpc.aio import InferenceServerClient, InferInput

MODELS = Path(__file__).resolve().parents[2] / "models_traced"
BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]}
PARENT = "b7ad6b7169203331"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, OtlpReceiver]]:
    """Yield a server that traces what its clients trace, and the receiver of its spans."""
    with receiving() as receiver:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=0", f"opentelemetry,url={receiver.url}"]
        flags = [f"--trace-config={setting}" for setting in [*settings, "opentelemetry,bsp_schedule_delay=50"]]
        server = argosy(MODELS, *flags, log=tmp_path_factory.mktemp("traced") / "server.log")
        yield server, receiver
        server.stop()


async def over_http(at: Standing, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"http://{at.http}/v2/models/double/infer", json=BODY, headers=headers, timeout=60)
    assert answer.status_code == 200


async def over_grpc(at: Standing, headers: dict[str, str]) -> None:
    values = InferInput("X", [1, 2], "FP32")
    values.set_data_from_numpy(np.ones((1, 2), np.float32))
    async with InferenceServerClient(at.grpc) as client:
        await client.infer("double", [values], headers=headers)


@pytest.mark.parametrize(("number", "send"), [(1, over_http), (2, over_grpc)])
async def test_a_request_that_waited_belongs_to_its_clients_trace(traced, number: int, send) -> None:
    server, receiver = traced
    trace_id = f"{number:032x}"
    async with standing() as at:
        at.says(models=("double",))
        request = asyncio.create_task(send(at, {"traceparent": f"00-{trace_id}-{PARENT}-01"}))
        await at.channel.until(**{"the-double": 1})
        at.says(endpoint(server), models=("double",))
        await request

    def parents() -> dict[str, str]:
        spans = [span for span in receiver.spans if span.trace_id.hex() == trace_id]
        return {span.name: span.parent_span_id.hex() for span in spans}

    await until(lambda: parents().keys() == {"InferRequest", "double", "compute"})
    assert parents()["InferRequest"] == PARENT
