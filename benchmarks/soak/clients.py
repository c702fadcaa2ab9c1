"""The clients of a soak: each does one thing over and over until the time is up."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
from tritonclient import grpc, http
from tritonclient.grpc import aio as grpc_aio
from tritonclient.http import aio as http_aio
from tritonclient.utils import InferenceServerException, shared_memory

from .models import FRAIL, PASSING, SOUND, STREAM, SUM, SUM_SIZE
from .tally import Tally

ANSWER_S = 60.0
"""How long an answer may take before it counts as lost."""
SIZES = (1, 16, 40_000)
"""Numbers of a request's row: some bytes, a packet, and what goes through shared memory."""
_CRASH_EVERY = 20
_SEQUENCES = 6
"""Sequences at once: more than the model has slots."""
_PAUSE_S = 0.02

Do = Callable[[], Awaitable[None]]


class Clients:
    """Asks one server, over HTTP and gRPC, and keeps count."""

    def __init__(self, tally: Tally, over_grpc: Any, over_http: Any, seed: int) -> None:
        self._tally = tally
        self._grpc = over_grpc
        self._http = over_http
        self._random = random.Random(seed)

    async def run(self, seconds: float) -> None:
        """Let every client work for so long; return when all have their answers."""
        until = asyncio.get_running_loop().time() + seconds
        work: list[Do] = [self._ask_grpc, self._ask_http, self._cancel, self._stream, self._crash, self._come_and_go]
        work += [self._by_shared_memory, *([self._sequence] * _SEQUENCES)]
        await asyncio.gather(*(_repeat(do, until) for do in work))
        await self._settle()

    async def _settle(self) -> None:
        """Leave the server as it was: the frail model back, the passing one gone."""
        await self._until_ready(FRAIL, True)
        await self._grpc.unload_model(PASSING)
        await self._until_ready(PASSING, False)

    async def _until_ready(self, model: str, ready: bool) -> None:
        async with asyncio.timeout(ANSWER_S):
            while await self._grpc.is_model_ready(model) != ready:  # noqa: ASYNC110  (the server notifies no client)
                await asyncio.sleep(_PAUSE_S)

    def _row(self, size: int | None = None) -> np.ndarray[Any, np.dtype[np.float32]]:
        size = size or self._random.choice(SIZES)
        return np.full((1, size), self._random.randrange(1, 1000), np.float32)

    async def _ask_grpc(self) -> None:
        await self._ask(self._grpc, grpc, self._random.choice(SOUND), self._row(), may_fail=False)

    async def _ask_http(self) -> None:
        await self._ask(self._http, http, self._random.choice(SOUND), self._row(), may_fail=False)

    async def _ask(self, client: Any, kind: Any, model: str, x: np.ndarray[Any, Any], *, may_fail: bool) -> None:
        timeout = {"client_timeout": ANSWER_S} if kind is grpc else {}
        try:
            async with asyncio.timeout(2 * ANSWER_S):
                answer = await client.infer(model, [_input(kind, x)], **timeout)
        except InferenceServerException as error:
            self._tally.fail(model, error, may_fail)
        except (OSError, TimeoutError):
            self._tally.requests += 1
            self._tally.lost_answers += 1
        else:
            self._tally.judge(np.array_equal(answer.as_numpy("Y"), 2 * x))

    async def _cancel(self) -> None:
        """Leave at any moment: before the request is there, while it runs, or after its answer."""
        x = self._row()
        asking = asyncio.ensure_future(self._grpc.infer(self._random.choice(SOUND), [_input(grpc, x)]))
        await asyncio.sleep(self._random.random() * _PAUSE_S)
        self._tally.cancellations += asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    async def _stream(self) -> None:
        """Read a stream to its end, or leave it."""
        count = self._random.randrange(1, 200)
        leaves_at = self._random.randrange(count) if self._random.random() < 0.3 else count
        self._tally.streams += 1
        seen: list[float] = []
        try:
            async with asyncio.timeout(ANSWER_S):
                answers = self._grpc.stream_infer(_one(STREAM, np.full((1, 1), count, np.float32)))
                async for result, error in answers:
                    if error is not None:
                        self._tally.fail(STREAM, error, may_fail=False)
                        return
                    seen.append(float(result.as_numpy("Y")[0, 0]))
                    if len(seen) > leaves_at:
                        answers.cancel()
                        return
        except (InferenceServerException, TimeoutError):
            self._tally.lost_answers += 1
            return
        self._tally.lost_answers += count - len(seen) if len(seen) < count else 0
        self._tally.judge(seen == list(range(len(seen))) and len(seen) <= count)

    async def _sequence(self) -> None:
        """Send the requests of a sequence, or leave it before its end, so that the server ends it."""
        self._tally.sequences += 1
        name, length = self._random.randrange(1, 2**63), self._random.randrange(1, 10)
        total = np.zeros((1, SUM_SIZE), np.float32)
        ends = self._random.random() < 0.8
        for at in range(length):
            x = self._row(SUM_SIZE)
            total += x
            flags = {"sequence_start": at == 0, "sequence_end": ends and at == length - 1}
            try:
                answer = await self._grpc.infer(
                    SUM, [_input(grpc, x)], sequence_id=name, client_timeout=ANSWER_S, **flags
                )
            except InferenceServerException as error:
                self._tally.fail(SUM, error, may_fail=False)
                return
            self._tally.judge(np.array_equal(answer.as_numpy("Y"), total))

    async def _by_shared_memory(self) -> None:
        """Register a region, send a row in it, read the answer from it, and leave it; now and then it is too short."""
        self._tally.regions += 1
        x, name = self._row(), f"soak{self._random.randrange(1 << 30)}"
        is_short = self._random.random() < 0.1
        region = shared_memory.create_shared_memory_region(name, f"/{name}", x.nbytes if is_short else 2 * x.nbytes)
        try:
            shared_memory.set_shared_memory_region(region, [x])
            await self._grpc.register_system_shared_memory(name, f"/{name}", 2 * x.nbytes)
            await self._infer_in(name, region, x)
        except InferenceServerException as error:
            self._tally.fail(name, error, may_fail=is_short)
        finally:
            await self._grpc.unregister_system_shared_memory(name)
            shared_memory.destroy_shared_memory_region(region)

    async def _infer_in(self, name: str, region: Any, x: np.ndarray[Any, Any]) -> None:
        sent, output = grpc.InferInput("X", list(x.shape), "FP32"), grpc.InferRequestedOutput("Y")
        sent.set_shared_memory(name, x.nbytes)
        output.set_shared_memory(name, x.nbytes, offset=x.nbytes)
        model = self._random.choice(SOUND)
        await self._grpc.infer(model, [sent], outputs=[output], client_timeout=ANSWER_S)
        answer = shared_memory.get_contents_as_numpy(region, np.float32, x.shape, offset=x.nbytes)
        self._tally.judge(np.array_equal(answer, 2 * x))

    async def _crash(self) -> None:
        """Ask what may be about to end; now and then be why it ends."""
        x = self._row()
        if self._random.randrange(_CRASH_EVERY) == 0:
            self._tally.crashes += 1
            x = -x
        await self._ask(self._grpc, grpc, FRAIL, x, may_fail=True)
        await asyncio.sleep(_PAUSE_S)

    async def _come_and_go(self) -> None:
        """Load a model, ask it, and unload it while a request may still be there."""
        await self._grpc.load_model(PASSING)
        self._tally.loads += 1
        await self._ask(self._grpc, grpc, PASSING, self._row(), may_fail=False)
        last = asyncio.ensure_future(self._ask(self._grpc, grpc, PASSING, self._row(), may_fail=True))
        await self._grpc.unload_model(PASSING)
        await last
        await self._until_ready(PASSING, False)


async def soak(tally: Tally, grpc_address: str, http_address: str, seconds: float, seed: int) -> None:
    """Run every client against a server, whose models are loaded, for so long."""
    async with AsyncExitStack() as stack:
        over_grpc = await stack.enter_async_context(grpc_aio.InferenceServerClient(grpc_address))
        over_http = await stack.enter_async_context(http_aio.InferenceServerClient(http_address))
        await Clients(tally, over_grpc, over_http, seed).run(seconds)


async def _repeat(do: Do, until: float) -> None:
    while asyncio.get_running_loop().time() < until:
        await do()


def _input(kind: Any, x: np.ndarray[Any, Any]) -> Any:
    made = kind.InferInput("X", list(x.shape), "FP32")
    made.set_data_from_numpy(x)
    return made


async def _one(model: str, x: np.ndarray[Any, Any]) -> AsyncIterator[dict[str, Any]]:
    yield {"model_name": model, "inputs": [_input(grpc, x)]}
