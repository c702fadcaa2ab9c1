"""Requests that wait for a server, up to a number, a size and a time.

A request is counted only while it waits: one for a model that some server has ready is forwarded at once. A request
that is refused because the queue is full is demand as well, and is reported for a while: its model would never get a
server otherwise.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

from .fair_queue import FairQueue, FullError, Limits, PendingRequest
from .members import Servers
from .spans import RequestSpan

Way = TypeVar("Way")
"""An open way to a server: what a protocol's `connect` makes."""


class Refusal(StrEnum):
    """The reason why a request is not forwarded: the model has no member, the queue is full, or the request waited too
    long.
    """

    UNKNOWN = "unknown"
    FULL = "full"
    TIMEOUT = "timeout"


class NotForwardedError(Exception):
    """A request is not forwarded; the message names the model and what to do."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal, self.message = refusal, message


@dataclass(slots=True)
class Wait:
    """How the wait of a request ends: the client is gone unless it is said otherwise."""

    outcome: str = "gone"


@contextmanager
def waiting(span: RequestSpan, ended: Callable[[str, str], None], name: str) -> Iterator[Wait]:
    """Yield the wait of a request for a server. Its end is noted in the span, and by `ended` with the model's name."""
    wait = Wait()
    try:
        yield wait
    except NotForwardedError as error:
        wait.outcome = error.refusal
        raise
    finally:
        ended(name, wait.outcome)
        span.waited(wait.outcome)


class UnreachableError(Exception):
    """A server does not accept the connection: nothing of the request was sent there."""


REFUSED_S = 15.0
"""For how long at least a refused request is reported, so that the operator's next reading has it."""


class Observer(Protocol):
    """Receives the number of requests that wait, by resource name."""

    def changed(self, queued: Mapping[str, int], refused: Mapping[str, int]) -> None:
        """Take note of the requests that wait now, and of those refused a moment ago by a full queue."""

    def waited(self, name: str, seconds: float) -> None:
        """Take note that a request no longer waits, and for how long it did."""


class PendingRequests:
    """Requests until they are forwarded. `seen` counts all requests so far."""

    def __init__(self, limits: Limits, observer: Observer) -> None:
        self._queue, self._observer = FairQueue(limits), observer
        self._members: dict[str, ActivatedMember] = {}
        self._refused: Counter[str] = Counter()
        self._refused_before: Counter[str] = Counter()
        self._servers = Servers()
        self.seen = 0

    def update(self, activation: Activation) -> None:
        """Replace the members, and wake the requests whose member has changed."""
        before, self._members = self._members, {member.model: member for member in activation.members}
        for request in self._queue:
            if before.get(request.model) != self._members.get(request.model):
                request.news.set()

    @property
    def models(self) -> Collection[str]:
        """The names that clients use of all members."""
        return self._members.keys()

    def member(self, model: str) -> ActivatedMember:
        """Return the member of a model, by the name that clients use. Raises NotForwardedError."""
        member = self._members.get(model)
        if member is None:
            raise NotForwardedError(
                Refusal.UNKNOWN,
                f"nothing is held for model '{model}': no InferenceModel or Ensemble of this pool with minReplicas 0 "
                "is served by this name",
            )
        return member

    async def reach(self, model: str, size: int, connect: Callable[[Endpoint], Awaitable[Way]]) -> Way:
        """Return a connection to a server that has the model, once there is one.

        `size` is the request's memory while it waits, in bytes. `connect` raises UnreachableError. Raises
        NotForwardedError.
        """
        self.seen += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        with ExitStack() as holding:
            request: PendingRequest | None = None
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
    def _holding(self, member: ActivatedMember, size: int) -> Iterator[PendingRequest]:
        request, loop = PendingRequest(member.name, member.model, size), asyncio.get_running_loop()
        began = loop.time()
        try:
            self._queue.enter(request)
        except FullError as error:
            self._refuse(member.name)
            raise _full(member, str(error)) from None
        self._report()
        try:
            yield request
        finally:
            self._queue.leave(request)
            self._report()
            self._observer.waited(member.name, loop.time() - began)

    def _refuse(self, name: str) -> None:
        if not self._refused and not self._refused_before:
            asyncio.get_running_loop().call_later(REFUSED_S, self._forget_refused)
        self._refused[name] += 1
        self._report()

    def _forget_refused(self) -> None:
        """Forget the refusals from before the previous call."""
        self._refused_before, self._refused = self._refused, Counter()
        if self._refused_before:
            asyncio.get_running_loop().call_later(REFUSED_S, self._forget_refused)
        self._report()

    def _report(self) -> None:
        self._observer.changed(self._queue.counts, self._refused + self._refused_before)

    async def _change(self, request: PendingRequest, member: ActivatedMember, deadline: float) -> None:
        """Wait until the member has changed, or a server of it may be tried again."""
        loop = asyncio.get_running_loop()
        if request.gives_way:
            self._refuse(member.name)
            raise _full(member, f"its request gave way to one of a model that has fewer: {request.gives_way}")
        if loop.time() >= deadline:
            because = f": {member.reason}" if member.reason else ""
            message = f"model '{member.model}' was not ready within {member.timeout_s:g} s{because}; ask again later"
            raise NotForwardedError(Refusal.TIMEOUT, message)
        again = self._servers.next_try(member.endpoints)
        request.news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline if again is None else min(again, deadline)):
                await request.news.wait()


def _full(member: ActivatedMember, why: str) -> NotForwardedError:
    return NotForwardedError(Refusal.FULL, f"model '{member.model}' is not ready, and {why}; ask again later")
