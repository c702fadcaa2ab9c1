"""The activator passes a client's trace context on with a request that has waited."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.agent.activator.standing import FLAGS, Standing, endpoint, standing
from tests.peers.argosy import argosy
from tests.peers.otlp import OtlpReceiver, attributes, receiving, refusing
from tests.peers.server import Server
from tests.waiting import until
from tritonclient.grpc.aio import InferenceServerClient, InferInput

from argosy_agent.activator.flags import parse

MODELS = Path(__file__).resolve().parents[2] / "models_traced"
BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]}
PARENT = "b7ad6b7169203331"
MODE = ("mode=opentelemetry", "level=TIMESTAMPS")


def tracing(receiver: OtlpReceiver, rate: int) -> list[str]:
    """Return the flags of an activator that traces."""
    settings = [*MODE, f"rate={rate}", f"opentelemetry,url={receiver.url}", "opentelemetry,bsp_schedule_delay=50"]
    return [f"--trace-config={setting}" for setting in settings]


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


@pytest.mark.parametrize(("number", "send"), [(3, over_http), (4, over_grpc)])
async def test_the_span_of_an_activator_is_between_the_clients_and_the_servers(traced, number: int, send) -> None:
    server, receiver = traced
    trace_id = f"{number:032x}"
    async with standing(*tracing(receiver, rate=0)) as at:
        at.says(models=("double",))
        request = asyncio.create_task(send(at, {"traceparent": f"00-{trace_id}-{PARENT}-01"}))
        await at.channel.until(**{"the-double": 1})
        at.says(endpoint(server), models=("double",))
        await request

    def spans() -> dict[str, Span]:
        return {span.name: span for span in receiver.spans if span.trace_id.hex() == trace_id}

    await until(lambda: spans().keys() == {"activator", "InferRequest", "double", "compute"})
    held, served = spans()["activator"], spans()["InferRequest"]
    assert held.parent_span_id.hex() == PARENT
    assert served.parent_span_id == held.span_id
    assert held.start_time_unix_nano <= served.start_time_unix_nano
    assert [event.name for event in held.events] == ["QUEUE_START", "QUEUE_END"]
    assert attributes(held) == {"triton.model_name": "double", "argosy.outcome": "passed"}


async def test_one_request_in_so_many_is_traced_and_a_refused_one_says_so(traced) -> None:
    _, receiver = traced
    before = len(receiver.spans)
    async with standing(*tracing(receiver, rate=2)) as at:
        at.says(models=("double",), timeout_s=0.05)
        async with httpx.AsyncClient() as client:
            for _ in range(4):
                answer = await client.post(f"http://{at.http}/v2/models/double/infer", json=BODY, timeout=60)
                assert answer.status_code == 503
    spans = receiver.spans[before:]
    assert [span.name for span in spans] == ["activator"] * 2
    assert [attributes(span)["argosy.outcome"] for span in spans] == ["timeout"] * 2
    assert not any(span.parent_span_id for span in spans)


async def test_a_receiver_that_is_away_delays_neither_requests_nor_for_long_the_end(traced) -> None:
    server, _ = traced
    began = asyncio.get_running_loop().time()
    with refusing() as url:
        flags = [f"--trace-config={setting}" for setting in (f"opentelemetry,url={url}", *MODE, "rate=1")]
        async with standing(*flags) as at:
            at.says(endpoint(server), models=("double",))
            await over_http(at, {})
    assert asyncio.get_running_loop().time() - began < 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["mode=triton", "level=TIMESTAMPS"], "spans need mode=opentelemetry and opentelemetry,url=URL"),
        ([*MODE], "spans need mode=opentelemetry and opentelemetry,url=URL"),
        ([*MODE, "opentelemetry,url=http://x", "rate=often"], "'often' is no number from 0 to 2147483647"),
        ([*MODE, "triton,file=x"], "the activator has no setting 'triton,file'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([*FLAGS, *(f"--trace-config={setting}" for setting in settings)])
    assert f"argument --trace-config: {message}" in capsys.readouterr().err


def test_without_a_level_nothing_is_traced() -> None:
    assert parse([*FLAGS, "--trace-config=mode=opentelemetry", "--trace-config=rate=1"]).tracing is None
