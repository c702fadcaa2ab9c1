"""Room for requests that wait: bounded, and shared fairly between models.

Each model may take all room that no other asks for. Where there is none left, the newest request of the model that
takes the most gives way, as long as that model then has no less than the one that asks.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests that wait at once, and the bytes of them that may stand in memory."""

    requests: int = 1000
    size: int = 1 << 28


class FullError(Exception):
    """There is no room; the message says of what."""


@dataclass(eq=False, slots=True)
class Waiting:
    """One request for a model, by its resource's name and by that which clients use, of `size` bytes.

    `news`: something else is known of the model, or `gives_way` says why it may not wait any more.
    """

    name: str
    model: str
    size: int
    gives_way: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Room:
    """The requests that wait now."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[str, dict[Waiting, None]] = {}
        self._size = 0

    def __iter__(self) -> Iterator[Waiting]:
        return (each for requests in self._waiting.values() for each in requests)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many wait, by resource name."""
        return {name: len(requests) for name, requests in self._waiting.items()}

    def enter(self, request: Waiting) -> None:
        """Let it wait, where need be in the place of others. Raises FullError where its model has its share."""
        full = self._full(len(self), self._size, request.size)
        for each in self._leaving(request):
            each.gives_way = full
            each.news.set()
            self.leave(each)
        self._waiting.setdefault(request.name, {})[request] = None
        self._size += request.size

    def leave(self, request: Waiting) -> None:
        """It waits no more. Does nothing where it does not wait."""
        requests = self._waiting.get(request.name, {})
        if request in requests:
            del requests[request]
            self._size -= request.size
            if not requests:
                del self._waiting[request.name]

    def _leaving(self, request: Waiting) -> list[Waiting]:
        """Those that give way for it. Raises FullError where that would be unfair, or not enough."""
        shares = {name: _Share(len(found), sum(each.size for each in found)) for name, found in self._waiting.items()}
        mine = shares.pop(request.name, _Share())
        newest = {name: reversed(self._waiting[name]) for name in shares}
        count, size, leaving = len(self), self._size, list[Waiting]()
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
        """Why there is no room for `more` bytes beside `count` requests of `size`; empty where there is."""
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

    def of(self, by_count: bool) -> int:
        return self.count if by_count else self.size
