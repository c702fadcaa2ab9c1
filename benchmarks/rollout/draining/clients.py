"""The clients of a Service while its servers end: none retries, and each failure is counted with its words."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
import numpy as np
from tritonclient.grpc import InferInput
from tritonclient.grpc import aio as triton
from tritonclient.utils import InferenceServerException

from .models import ECHO, TOKENS
from .service import Service

ANSWER_S = 60.0
"""How long an answer to a short request may take until it counts as failed."""
LONGEST_PAUSE_S = 8.0
"""Of a client that keeps its connection and uses it seldom: longer than a server waits for a new request."""
_OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]
_FAILURES = (httpx.HTTPError, InferenceServerException, grpc.RpcError, OSError, TimeoutError, ValueError, KeyError)


@dataclass
class Tally:
    """What clients met: short requests, streams, and in what words each of them failed."""

    requests: int = 0
    streams: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)

    async def request(self, kind: str, ask: Awaitable[None]) -> None:
        """Count a request."""
        self.requests += 1
        await _count(self.failures, kind, ask, ANSWER_S)

    async def stream(self, kind: str, read: Awaitable[None], longest_s: float) -> None:
        """Count a stream, which is cut if it fails, has not all of its tokens, or takes too long."""
        self.streams += 1
        await _count(self.cut, kind, read, longest_s)


async def _count(failed: Counter[str], kind: str, ask: Awaitable[None], longest_s: float) -> None:
    try:
        async with asyncio.timeout(longest_s):
            await ask
    except _FAILURES as error:
        failed[f"{kind}: {type(error).__name__}: {error}"[:200]] += 1


def _row(value: int) -> InferInput:
    made = InferInput("X", [1], "INT32")
    made.set_data_from_numpy(np.array([value], np.int32))
    return made


def _check(result: Any, expected: Any) -> None:
    if result != expected:
        raise ValueError(f"answered {result}, not {expected}")


class ShortRequests:
    """Requests that are answered at once, in each way that clients use connections."""

    def __init__(self, service: Service, tally: Tally, seed: int) -> None:
        self._http = f"http://127.0.0.1:{service.ports['http']}"
        self._grpc = f"127.0.0.1:{service.ports['grpc']}"
        self._tally, self._random = tally, random.Random(seed)

    async def over_new_connections(self, period_s: float) -> None:
        """Send requests over HTTP at a constant rate, answered or not, each on a connection of its own."""
        await self._at_a_rate(period_s, httpx.Limits(max_keepalive_connections=0), "new connection")

    async def over_reused_connections(self, period_s: float) -> None:
        """Send requests over HTTP at a constant rate, answered or not, on connections that are used again."""
        await self._at_a_rate(period_s, httpx.Limits(), "reused connection")

    async def _at_a_rate(self, period_s: float, limits: httpx.Limits, kind: str) -> None:
        begun = time.monotonic()
        async with httpx.AsyncClient(limits=limits, timeout=ANSWER_S, verify=False) as client, _answered() as requests:
            for number in range(1_000_000):
                await asyncio.sleep(max(0.0, begun + number * period_s - time.monotonic()))
                requests.add(asyncio.create_task(self._tally.request(kind, self._post(client, number % 1000))))

    async def seldom(self) -> None:
        """Send a request over HTTP now and then, on one connection."""
        async with httpx.AsyncClient(timeout=ANSWER_S, verify=False) as client:
            while True:
                await asyncio.shield(self._tally.request("seldom used connection", self._post(client, 7)))
                await asyncio.sleep(self._random.uniform(0.0, LONGEST_PAUSE_S))

    async def _post(self, client: httpx.AsyncClient, value: int) -> None:
        row = {"name": "X", "datatype": "INT32", "shape": [1], "data": [value]}
        answer = await client.post(f"{self._http}/v2/models/{ECHO}/infer", json={"inputs": [row]})
        if answer.is_error:
            raise ValueError(answer.text)
        _check(answer.json()["outputs"][0]["data"], [value])

    async def over_a_channel(self, period_s: float) -> None:
        """Send requests over one gRPC channel, each a while after the last was answered."""
        async with triton.InferenceServerClient(self._grpc, channel_args=_OWN_CONNECTION) as client:
            while True:
                await asyncio.shield(self._tally.request("gRPC channel", self._infer(client, 7)))
                await asyncio.sleep(period_s)

    async def _infer(self, client: Any, value: int) -> None:
        answer = await client.infer(ECHO, [_row(value)])
        _check(answer.as_numpy("Y").tolist(), [value])

    async def over_a_stream(self, period_s: float) -> None:
        """Send requests over one gRPC stream, each a while after the last was answered. One that ends between two
        requests is opened again, as a client must do.
        """
        async with triton.InferenceServerClient(self._grpc, channel_args=_OWN_CONNECTION) as client:
            while True:
                await asyncio.shield(_converse(client, self._tally, period_s))


async def _converse(client: Any, tally: Tally, period_s: float) -> None:
    """Send requests over a stream until it ends."""
    sending, answered = asyncio.Event(), asyncio.Event()
    answered.set()

    async def requests() -> AsyncIterator[dict[str, Any]]:
        while True:
            await answered.wait()
            answered.clear()
            await asyncio.sleep(period_s)
            sending.set()
            yield {"model_name": ECHO, "inputs": [_row(7)]}

    try:
        async for result, error in client.stream_infer(requests()):
            tally.requests += 1
            sending.clear()
            if error is not None:
                tally.failures[f"gRPC stream: {error}"[:200]] += 1
            else:
                _check(result.as_numpy("Y").tolist(), [7])
            answered.set()
    except InferenceServerException as error:
        if sending.is_set():
            tally.requests += 1
            tally.failures[f"gRPC stream: {error}"[:200]] += 1


class LongStreams:
    """Streams of tokens that go on while their server ends."""

    def __init__(self, service: Service, tally: Tally, tokens: int) -> None:
        self._http = f"http://127.0.0.1:{service.ports['http']}"
        self._grpc = f"127.0.0.1:{service.ports['grpc']}"
        self._tally, self._tokens = tally, tokens
        self._expected = [f"{number} " for number in range(tokens)]

    async def read_all(self, longest_s: float) -> None:
        """Read a stream of each kind to its end."""
        kinds = {"gRPC": self._over_grpc, "generate_stream": self._over_http, "chat completions": self._over_openai}
        await asyncio.gather(*(self._tally.stream(kind, read(), longest_s) for kind, read in kinds.items()))

    async def _over_grpc(self) -> None:
        sampling = InferInput("sampling_parameters", [1], "BYTES")
        sampling.set_data_from_numpy(np.array([json.dumps({"max_tokens": self._tokens}).encode()], np.object_))

        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": TOKENS, "inputs": [sampling]}

        seen: list[str] = []
        async with triton.InferenceServerClient(self._grpc, channel_args=_OWN_CONNECTION) as client:
            async for result, error in client.stream_infer(requests()):
                if error is not None:
                    raise error
                seen += [text.decode() for text in result.as_numpy("text_output")]
        _check(seen, self._expected)

    async def _over_http(self) -> None:
        body = {"text_input": "Once", "sampling_parameters": json.dumps({"max_tokens": self._tokens})}
        await self._events(f"/v2/models/{TOKENS}/generate_stream", body, lambda event: event["text_output"])

    async def _over_openai(self) -> None:
        messages = [{"role": "user", "content": "Once"}]
        body = {"model": TOKENS, "messages": messages, "max_tokens": self._tokens, "stream": True}
        await self._events(
            "/v1/chat/completions", body, lambda event: event["choices"][0]["delta"].get("content") or ""
        )

    async def _events(self, path: str, body: dict[str, Any], text: Callable[[Any], str]) -> None:
        """Read server-sent events, with the text that each has."""
        async with (
            httpx.AsyncClient(timeout=ANSWER_S, verify=False) as client,
            client.stream("POST", f"{self._http}{path}", json=body) as answer,
        ):
            if answer.is_error:
                raise ValueError((await answer.aread()).decode())
            seen = [text(json.loads(line[6:])) async for line in answer.aiter_lines() if line.startswith("data: {")]
        _check([piece for piece in seen if piece], self._expected)


@asynccontextmanager
async def _answered() -> AsyncIterator[set["asyncio.Task[None]"]]:
    """Yield a set of requests, for which the end of the block waits."""
    requests: set[asyncio.Task[None]] = set()
    try:
        yield requests
    finally:
        await asyncio.gather(*requests)
