"""Calls to storage, which may hang, in threads: a few for each storage, so that one that hangs delays no other.

A thread cannot be ended. One that hangs still counts for its storage, which may have at most `per_storage` threads;
calls to other storages are not delayed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import PurePath
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import psutil

from argosy_agent.threads import in_thread
from argosy_agent.transfer.localfiles import is_file, local_path

Result = TypeVar("Result")
SILENT_S = 30.0
"""A storage of which nothing came for so long counts as one that does not answer."""


class Call(Generic[Result]):
    """One call to `storage` for `model`; `result` is its future. Times are seconds of the agent's clock."""

    def __init__(self, storage: str, model: str, work: "Work[Result]", now: float) -> None:
        self.storage, self.model, self.work = storage, model, work
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.heard_at = now
        self.complete = False
        """Whether all bytes have come: what is done with them takes its time, which is not the storage's."""

    def heard(self, now: float) -> None:
        """Take note that the storage answered something. Any thread may call it."""
        self.heard_at = now

    def silent_s(self, now: float) -> float:
        """Return for how long the storage has not answered."""
        return 0.0 if self.complete else now - self.heard_at


Work = Callable[[Call[Result]], Result]


class StorageThreads:
    """Runs calls, `at_once` of those that answer and `per_storage` of one storage. It lives on one event loop."""

    def __init__(self, clock: Callable[[], float], at_once: int, per_storage: int) -> None:
        self._clock, self._at_once, self._per_storage = clock, at_once, per_storage
        self._waiting: list[Call[Any]] = []
        self._running: dict[Call[Any], asyncio.Future[Any]] = {}

    def submit(self, storage: str, model: str, work: "Work[Result]") -> "Call[Result]":
        """Run `work` in its turn, with its call, so that it can note each answer of the storage.

        To give it up, cancel its result; its thread ends when it can.
        """
        call = Call(storage, model, work, self._clock())
        self._waiting.append(call)
        self.start_due()
        return call

    def start_due(self) -> None:
        """Start what has its turn. To be called now and then: calls that hang make room as time passes."""
        now = self._clock()
        busy = Counter(call.storage for call in self._running)
        answering = sum(call.silent_s(now) < SILENT_S for call in self._running)
        left: list[Call[Any]] = []
        for call in self._waiting:
            if call.result.done():
                continue
            if answering < self._at_once and busy[call.storage] < self._per_storage:
                answering, busy[call.storage] = answering + 1, busy[call.storage] + 1
                self._start(call, now)
            else:
                left.append(call)
        self._waiting = left

    def silent(self) -> "list[tuple[Call[Any], float]]":
        """Return the calls whose storage does not answer, and calls queued behind them, with their age in seconds."""
        now = self._clock()
        hung = {call: call.silent_s(now) for call in self._running if call.silent_s(now) >= SILENT_S}
        full = {name for name, count in Counter(call.storage for call in hung).items() if count >= self._per_storage}
        least = {name: min(s for call, s in hung.items() if call.storage == name) for name in full}
        behind = [(call, least[call.storage]) for call in self._waiting if call.storage in full]
        return [pair for pair in (*hung.items(), *behind) if not pair[0].result.done()]

    async def ended(self, timeout_s: float) -> None:
        """Wait until what runs has ended, at most so long; what waits is not begun any more."""
        self._waiting.clear()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=timeout_s)

    def _start(self, call: "Call[Any]", now: float) -> None:
        def end(done: asyncio.Future[Any]) -> None:
            del self._running[call]
            error = done.exception()
            if not call.result.done():
                if error is None:
                    call.result.set_result(done.result())
                else:
                    call.result.set_exception(error)
            self.start_due()

        call.heard(now)
        self._running[call] = in_thread(partial(call.work, call))
        self._running[call].add_done_callback(end)


@lru_cache(1024)
def storage_of(uri: str) -> str:
    """Return the storage of a URI by a name for people: what hangs together when it hangs. Never with a password.

    Of files it is the file system that they are on.
    """
    try:
        parts = urlsplit(uri)
        if not is_file(uri):
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        path = PurePath(local_path(uri))
    except ValueError:
        return ""
    partitions = psutil.disk_partitions(all=True)
    mounts = (partition.mountpoint for partition in partitions if path.is_relative_to(partition.mountpoint))
    return f"file:{max(mounts, key=len, default='/')}"


def unanswered(storage: str, silent_s: float) -> str:
    """Return the message for a model whose storage does not answer.

    It changes ever more seldom, for each change is written.
    """
    shown = SILENT_S
    while 2 * shown <= silent_s:
        shown *= 2
    return (
        f"{storage}: the storage does not answer for {shown:.0f} s; see that its server is up and can be reached, then "
        "it goes on by itself; other models do not wait for it"
    )
