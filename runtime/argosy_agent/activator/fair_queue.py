"""A bounded queue of requests that wait, shared fairly between models.

A model may take all of it while no other needs it. Where it is full, the newest request of the model with the largest
share gives way, as long as that model then has no less than the one that asks.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests that wait at once, and the most bytes of them in memory."""

    requests: int = 1000
    size: int = 1 << 28


class FullError(Exception):
    """The queue is full; the message names the bound."""


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request of `size` bytes that waits, with the names of the resource and of the model.

    `news` is set when something about the model has changed, or when `gives_way` says why the request may not wait any
    longer.
    """

    name: str
    model: str
    size: int
    gives_way: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)


class FairQueue:
    """The requests that wait now."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[str, dict[PendingRequest, None]] = {}
        self._size = 0

    def __iter__(self) -> Iterator[PendingRequest]:
        return (request for requests in self._waiting.values() for request in requests)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many wait, by resource name."""
        return {name: len(requests) for name, requests in self._waiting.items()}

    def enter(self, request: PendingRequest) -> None:
        """Add a request, where need be in place of others. Raises FullError where its model has its share."""
        full = self._full(len(self), self._size, request.size)
        for leaving in self._leaving(request):
            leaving.gives_way = full
            leaving.news.set()
            self.leave(leaving)
        self._waiting.setdefault(request.name, {})[request] = None
        self._size += request.size

    def leave(self, request: PendingRequest) -> None:
        """Remove a request from the queue, if it is there."""
        requests = self._waiting.get(request.name, {})
        if request in requests:
            del requests[request]
            self._size -= request.size
            if not requests:
                del self._waiting[request.name]

    def _leaving(self, request: PendingRequest) -> list[PendingRequest]:
        """Return the requests that are evicted for this one.

        Raises FullError where that would be unfair, or not enough.
        """
        shares = {name: _Share.of_requests(waiting) for name, waiting in self._waiting.items()}
        mine = shares.pop(request.name, _Share())
        newest = {name: reversed(self._waiting[name]) for name in shares}
        count, size, leaving = len(self), self._size, list[PendingRequest]()
        while full := self._full(count, size, request.size):
            by_count = count >= self._limits.requests
            name = max(shares, key=lambda name: shares[name].of(by_count), default="")
            if not name or shares[name].of(by_count) <= mine.of(by_count) + (1 if by_count else request.size):
                raise FullError(full)
            gone = next(newest[name])
            leaving.append(gone)
            shares[name] = _Share(shares[name].count - 1, shares[name].size - gone.size)
            count, size = count - 1, size - gone.size
        return leaving

    def _full(self, count: int, size: int, more: int) -> str:
        """Return why `more` bytes do not fit next to `count` requests of `size` bytes; empty where they fit."""
        if count >= self._limits.requests:
            return f"{count} requests wait already, the most that are held"
        if size + more > self._limits.size:
            return f"with it {size + more} bytes would wait, of at most {self._limits.size}"
        return ""


@dataclass(frozen=True, slots=True)
class _Share:
    """What the requests of one model take."""

    count: int = 0
    size: int = 0

    @classmethod
    def of_requests(cls, requests: Collection[PendingRequest]) -> "_Share":
        return cls(len(requests), sum(request.size for request in requests))

    def of(self, by_count: bool) -> int:
        return self.count if by_count else self.size
