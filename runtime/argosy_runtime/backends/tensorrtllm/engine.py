"""TensorRT-LLM's engine with its requests: an event loop on a thread of its own follows each of them to its end."""

import asyncio
import itertools
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.generation.choices import Step
from argosy_runtime.backends.generation.work import Work, WorkReports, ended, explained
from argosy_runtime.errors import ServingError, cancelled, internal, invalid, unavailable

SWEEP_SECONDS: Final = 0.05
"""Seconds between looks for clients that have gone."""
REPORT_SECONDS: Final = 0.5
"""Seconds between reports of the engine's state."""


@dataclass(slots=True)
class EngineWork(Work):
    """Work with the arguments of `generate_async`, and what that returned."""

    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    task: "asyncio.Task[None] | None" = None


class Engine:
    """An `LLM` of TensorRT-LLM. `request_error` is its error of one request; others are the engine's end."""

    def __init__(self, name: str, llm: Any, request_error: type[Exception], host: Host) -> None:
        self._name = name
        self._llm = llm
        self._request_error = request_error
        self._host = host
        self._reports = WorkReports(name, host)
        self._cache_tokens: int | None = None
        self._numbers = itertools.count()
        self._open: dict[int, EngineWork] = {}
        self._stopping = False
        self._lost = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"{name}-engine", daemon=True)
        self._thread.start()
        self._begin(self._sweep())
        self._begin(self._report())

    def submit(self, work: EngineWork) -> None:
        """Let a request join the batch. Its answers come on the engine's thread."""
        self._reports.arrive(work)
        self._loop.call_soon_threadsafe(self._accept, work)

    def close(self) -> None:
        """Stop at once. Requests still in the batch fail."""
        self._stopping = True
        self._begin(self._end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._llm.shutdown()

    def _begin(self, coroutine: Any) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _accept(self, work: EngineWork) -> None:
        if self._stopping or self._lost:
            work.on_error(self._ended())
            return
        number = next(self._numbers)
        self._open[number] = work
        work.task = self._loop.create_task(self._follow(number, work))

    async def _follow(self, number: int, work: EngineWork) -> None:
        """Generate, and tell of each step. Errors reach this request, or, where the engine is lost, all of them."""
        try:
            # a plain function, which needs the running loop
            work.result = self._llm.generate_async(streaming=True, **work.arguments)
            self._reports.start(work)
            async for result in work.result:
                if self._take(number, work, result):
                    break
        except asyncio.CancelledError:
            raise
        except self._request_error as error:
            self._fail(number, work, internal(f"model instance '{self._name}' failed while generating: {error}"))
        except ValueError as error:
            self._fail(number, work, invalid(f"model instance '{self._name}' refuses the request: {error}"))
        except RuntimeError as error:
            self._lose(str(error))
        except Exception as error:
            self._fail(number, work, internal(f"model instance '{self._name}' could not answer: {error}"))
        finally:
            self._open.pop(number, None)

    def _take(self, number: int, work: EngineWork, result: Any) -> bool:
        """Tell of one step. Return whether the request is over. An error of ours ends this request alone."""
        try:
            return self._advance(work, result)
        except Exception as error:
            with suppress(Exception):
                result.abort()
            self._fail(number, work, internal(f"model instance '{self._name}' could not answer: {error}"))
            return True

    def _advance(self, work: EngineWork, result: Any) -> bool:
        """Tell of one step. Return whether the request is over."""
        output, now = result.outputs[0], time.perf_counter()
        step = Step(
            tuple(output.token_ids or ()),
            tuple(output.logprobs or ()),
            output.finish_reason,
            int(getattr(result, "cached_tokens", 0) or 0),
        )
        self._count(work, step, now)
        if step.finish_reason in ("timeout", "cancelled"):
            work.on_error(unavailable(f"model instance '{self._name}' ended the request: {step.finish_reason}"))
            return True
        over = work.on_step(step)
        if over or step.finish_reason is not None:
            self._reports.answer(work, now)
            if step.finish_reason is None:
                result.abort()
            return True
        return False

    def _count(self, work: EngineWork, step: Step, now: float) -> None:
        new = self._reports.count(work, len(step.tokens), step.cached)
        if work.metered is not None and new:
            work.metered.began(now)
            work.metered.generated(new, now)

    async def _sweep(self) -> None:
        """Abort the requests whose clients have gone, which frees their part of the cache."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for number, work in list(self._open.items()):
                if work.is_cancelled():
                    self._abort(number, work)
                    work.on_error(cancelled())

    def _abort(self, number: int, work: EngineWork) -> None:
        self._open.pop(number, None)
        if work.result is not None:
            with suppress(Exception):
                work.result.abort()
        if work.task is not None:
            work.task.cancel()

    async def _report(self) -> None:
        """Report the engine's state where it has changed. An error there leaves the requests alone."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            try:
                self._reports.send(*self._state(await self._statistics()))
            except Exception as error:
                self._reports.failed(error)

    async def _statistics(self) -> dict[str, Any]:
        """Return the newest statistics of an iteration; empty where there are none, as while nothing runs."""
        newest: dict[str, Any] = {}
        if self._open:
            until = self._loop.time() + REPORT_SECONDS
            async for statistics in self._llm.get_stats_async(timeout=REPORT_SECONDS):
                newest = statistics
                if self._loop.time() >= until:  # while iterations go on it does not end by itself
                    break
        return newest

    def _state(self, statistics: dict[str, Any]) -> tuple[int, int, float | None, int | None]:
        """Return the waiting and the running requests, the share of the cache in use, and the tokens it holds."""
        running = sum(1 for work in self._open.values() if work.tokens)
        waiting = len(self._open) - running
        cache = statistics.get("kvCacheStats") or {}
        most, used = int(cache.get("maxNumBlocks") or 0), int(cache.get("usedNumBlocks") or 0)
        if most:
            self._cache_tokens = most * int(cache.get("tokensPerBlock") or 0) or None
        return (
            int(statistics.get("numQueuedRequests", waiting)),
            int(statistics.get("numActiveRequests", running)),
            used / most if most else (0.0 if self._reports.reported and not self._open else None),
            self._cache_tokens,
        )

    def _fail(self, number: int, work: EngineWork, error: ServingError) -> None:
        self._open.pop(number, None)
        work.on_error(explained(error, error.message))

    def _lose(self, words: str) -> None:
        """Fail what is in the batch, and have the instance replaced: nothing brings the engine back."""
        if self._stopping or self._lost:
            return
        self._lost = words or "its executor ended"
        lost, self._open = list(self._open.values()), {}
        for work in lost:
            work.on_error(self._ended())
        self._host.lost(self._ended())

    async def _end(self) -> None:
        lost, self._open = list(self._open.items()), {}
        for number, work in lost:
            self._abort(number, work)
            work.on_error(self._ended())
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _ended(self) -> ServingError:
        return ended(self._name, "" if self._stopping else self._lost)
