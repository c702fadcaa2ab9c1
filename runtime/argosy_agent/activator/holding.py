"""Requests that wait for a server: how many, for which models, for how long at most.

A request is counted only while it waits: one for a model that some server has ready is passed on as it comes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

from .servers import Servers

Way = TypeVar("Way")
"""An open way to a server: what a protocol's `connect` makes."""


class Refusal(StrEnum):
    """Why a request is not passed on: nothing is held for the model; as many wait as may; it waited in vain."""

    UNKNOWN = "unknown"
    FULL = "full"
    TIMEOUT = "timeout"


class HoldingError(Exception):
    """A request is not passed on; the message names the model and the way out."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal, self.message = refusal, message


class UnreachableError(Exception):
    """A server does not take the connection: nothing of the request went there."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests that are held at once, and the bytes of them that may stand in memory."""

    requests: int = 1000
    size: int = 1 << 28


class Listener(Protocol):
    """What is told of requests that wait, by resource name."""

    def changed(self, held: Mapping[str, int]) -> None:
        """So many wait now."""

    def waited(self, name: str, seconds: float) -> None:
        """One waits no more, whatever became of it."""


class Holder:
    """Holds requests until there is where to pass them on to. `seen` counts those that ever came."""

    def __init__(self, limits: Limits, listener: Listener) -> None:
        self._limits, self._listener = limits, listener
        self._members: dict[str, ActivatedMember] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._held: dict[str, int] = {}
        self._size = 0
        self._servers = Servers()
        self.seen = 0

    def update(self, activation: Activation) -> None:
        """This is where models are ready from now on."""
        before, self._members = self._members, {each.model: each for each in activation.members}
        for model in [each for each in self._news if before.get(each) != self._members.get(each)]:
            self._news.pop(model).set()

    def member(self, model: str) -> ActivatedMember:
        """What is known of a model, by the name that clients use. Raises HoldingError."""
        found = self._members.get(model)
        if found is None:
            raise HoldingError(
                Refusal.UNKNOWN,
                f"nothing is held for model '{model}': no InferenceModel or Ensemble of this pool with minReplicas 0 "
                "is served by this name",
            )
        return found

    async def reach(self, model: str, size: int, connect: Callable[[Endpoint], Awaitable[Way]]) -> Way:
        """A way to a server that has the model, once there is one.

        `size` is what the request takes of memory while it waits, in bytes. `connect` raises UnreachableError. Raises
        HoldingError.
        """
        self.seen += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        with ExitStack() as holding:
            held = False
            while True:
                member = self.member(model)
                endpoint = self._servers.pick(member.endpoints, loop.time())
                if endpoint is not None:
                    with suppress(UnreachableError):
                        return await connect(endpoint)
                    self._servers.set_aside(endpoint, loop.time())
                    continue
                if not held:
                    holding.enter_context(self._holding(member, size))
                    held = True
                await self._change(member, began + member.timeout_s)

    @contextmanager
    def _holding(self, member: ActivatedMember, size: int) -> Iterator[None]:
        self._admit(member, size)
        loop, name = asyncio.get_running_loop(), member.name
        began = loop.time()
        self._count(name, 1, size)
        try:
            yield
        finally:
            self._count(name, -1, -size)
            self._listener.waited(name, loop.time() - began)

    def _admit(self, member: ActivatedMember, size: int) -> None:
        waiting = sum(self._held.values())
        if waiting >= self._limits.requests:
            why = f"{waiting} requests wait already, the most that are held"
        elif self._size + size > self._limits.size:
            why = f"with it {self._size + size} bytes would wait, of at most {self._limits.size}"
        else:
            return
        raise HoldingError(Refusal.FULL, f"model '{member.model}' is not ready, and {why}; ask again later")

    def _count(self, name: str, more: int, size: int) -> None:
        self._size += size
        self._held[name] = self._held.get(name, 0) + more
        if not self._held[name]:
            del self._held[name]
        self._listener.changed(dict(self._held))

    async def _change(self, member: ActivatedMember, deadline: float) -> None:
        """Wait until something else is known of the model, or a server of it may be asked again."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            because = f": {member.reason}" if member.reason else ""
            told = f"model '{member.model}' was not ready within {member.timeout_s:g} s{because}; ask again later"
            raise HoldingError(Refusal.TIMEOUT, told)
        again = self._servers.next_try(member.endpoints)
        news = self._news.setdefault(member.model, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline if again is None else min(again, deadline)):
                await news.wait()
