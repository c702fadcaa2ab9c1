"""vLLM called in its own process, as a child of the benchmark: `python -m benchmarks.language.engine ARGUMENTS FD`.

It runs in vLLM's environment, reads loads as JSON lines from standard input, and writes answers as JSON lines to the
file descriptor FD. The loops that send requests, and what an answer is, are those of `argosy bench`.
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from time import perf_counter
from typing import Any

from argosy.bench.answers import Answer
from argosy.bench.load.driver import drive
from argosy.bench.plan import Level


class Engine:
    """An `AsyncLLM`, whose requests generate exactly so many tokens."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
        self._count = 0

    async def measure(self, load: dict[str, Any]) -> list[Answer]:
        """Return the answers to a load's prompts, in the order of sending."""
        tokens = load["output_tokens"]

        async def send(body: bytes, intended: float) -> Answer:
            return await self._answer(body.decode(), tokens, intended)

        bodies = [prompt.encode() for prompt in load["prompts"]]
        level = Level(load["concurrency"], load["rate"])
        return await drive(send, bodies, level, load["seed"], perf_counter)

    async def _answer(self, prompt: str, tokens: int, intended: float) -> Answer:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        answer = Answer(intended, perf_counter())
        sampling = SamplingParams(
            temperature=0, max_tokens=tokens, min_tokens=tokens, ignore_eos=True, output_kind=RequestOutputKind.DELTA
        )
        self._count += 1
        async for output in self._engine.generate({"prompt": prompt}, sampling, str(self._count)):
            answer.arrivals.append(perf_counter())
            answer.prompt_tokens = len(output.prompt_token_ids)
            answer.output_tokens += len(output.outputs[0].token_ids)
        answer.end = perf_counter()
        return answer

    def close(self) -> None:
        """End the engine's processes."""
        self._engine.shutdown()


async def serve(arguments: dict[str, Any], results: int) -> None:
    """Answer loads until standard input ends."""
    engine = Engine(arguments)
    loop = asyncio.get_running_loop()
    try:
        _write(results, {"ready": True})
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            answers = await engine.measure(json.loads(line))
            _write(results, {"answers": [asdict(answer) for answer in answers]})
    finally:
        engine.close()


def _write(results: int, document: dict[str, Any]) -> None:
    data = memoryview(json.dumps(document).encode() + b"\n")
    while data:
        data = data[os.write(results, data) :]


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1]), int(sys.argv[2])))
