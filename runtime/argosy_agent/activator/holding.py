"""Requests that wait for a server: how many, for which models, for how long at most.

A request is counted only while it waits: one for a model that some server has ready is passed on as it comes. One that
found no room is demand all the same, and told for a while: else its model would never have a server.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from typing import Protocol, TypeVar

from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

from .room import FullError, Limits, Room, Waiting
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


REFUSED_S = 15.0
"""For how long at least a request that found no room is told of: the operator may be just about to look."""


class Listener(Protocol):
    """What is told of requests that wait, by resource name."""

    def changed(self, held: Mapping[str, int], refused: Mapping[str, int]) -> None:
        """So many wait now, and so many found no room a moment ago."""

    def waited(self, name: str, seconds: float) -> None:
        """One waits no more, whatever became of it."""


class Holder:
    """Holds requests until there is where to pass them on to. `seen` counts those that ever came."""

    def __init__(self, limits: Limits, listener: Listener) -> None:
        self._room, self._listener = Room(limits), listener
        self._members: dict[str, ActivatedMember] = {}
        self._refused: Counter[str] = Counter()
        self._refused_before: Counter[str] = Counter()
        self._servers = Servers()
        self.seen = 0

    def update(self, activation: Activation) -> None:
        """This is where models are ready from now on."""
        before, self._members = self._members, {each.model: each for each in activation.members}
        for request in self._room:
            if before.get(request.model) != self._members.get(request.model):
                request.news.set()

    def member(self, model: str) -> ActivatedMember:
        """Return what is known of a model, by the name that clients use. Raises HoldingError."""
        found = self._members.get(model)
        if found is None:
            raise HoldingError(
                Refusal.UNKNOWN,
                f"nothing is held for model '{model}': no InferenceModel or Ensemble of this pool with minReplicas 0 "
                "is served by this name",
            )
        return found

    async def reach(self, model: str, size: int, connect: Callable[[Endpoint], Awaitable[Way]]) -> Way:
        """Return a way to a server that has the model, once there is one.

        `size` is what the request takes of memory while it waits, in bytes. `connect` raises UnreachableError. Raises
        HoldingError.
        """
        self.seen += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        with ExitStack() as holding:
            request: Waiting | None = None
            while True:
                member = self.member(model)
                endpoint = self._servers.pick(member.endpoints, loop.time())
                if endpoint is not None:
                    with suppress(UnreachableError):
                        return await connect(endpoint)
                    self._servers.set_aside(endpoint, loop.time())
                    continue
                if request is None:
                    request = holding.enter_context(self._holding(member, size))
                await self._change(request, member, began + member.timeout_s)

    @contextmanager
    def _holding(self, member: ActivatedMember, size: int) -> Iterator[Waiting]:
        request, loop = Waiting(member.name, member.model, size), asyncio.get_running_loop()
        began = loop.time()
        try:
            self._room.enter(request)
        except FullError as error:
            self._refuse(member.name)
            raise _full(member, str(error)) from None
        self._tell()
        try:
            yield request
        finally:
            self._room.leave(request)
            self._tell()
            self._listener.waited(member.name, loop.time() - began)

    def _refuse(self, name: str) -> None:
        if not self._refused and not self._refused_before:
            asyncio.get_running_loop().call_later(REFUSED_S, self._forget_refused)
        self._refused[name] += 1
        self._tell()

    def _forget_refused(self) -> None:
        """What was refused before the last time that this was called is told no more."""
        self._refused_before, self._refused = self._refused, Counter()
        if self._refused_before:
            asyncio.get_running_loop().call_later(REFUSED_S, self._forget_refused)
        self._tell()

    def _tell(self) -> None:
        self._listener.changed(self._room.counts, self._refused + self._refused_before)

    async def _change(self, request: Waiting, member: ActivatedMember, deadline: float) -> None:
        """Wait until something else is known of the model, or a server of it may be asked again."""
        loop = asyncio.get_running_loop()
        if request.gives_way:
            self._refuse(member.name)
            raise _full(member, f"its request gave way to one of a model that has fewer: {request.gives_way}")
        if loop.time() >= deadline:
            because = f": {member.reason}" if member.reason else ""
            told = f"model '{member.model}' was not ready within {member.timeout_s:g} s{because}; ask again later"
            raise HoldingError(Refusal.TIMEOUT, told)
        again = self._servers.next_try(member.endpoints)
        request.news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline if again is None else min(again, deadline)):
                await request.news.wait()


def _full(member: ActivatedMember, why: str) -> HoldingError:
    return HoldingError(Refusal.FULL, f"model '{member.model}' is not ready, and {why}; ask again later")
