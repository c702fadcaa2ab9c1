"""preserve_ordering: responses leave in the order in which their requests came."""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class ResponseOrder(Generic[K, T]):
    """Holds back the responses of a request until every earlier request has had its final one."""

    def __init__(self) -> None:
        self._order: deque[K] = deque()
        self._held: dict[K, list[T]] = {}
        self._finished: set[K] = set()

    def expect(self, key: K) -> None:
        """A request with this key is on its way."""
        self._order.append(key)
        self._held[key] = []

    def receive(self, key: K, response: T, final: bool) -> list[tuple[K, T]]:
        """A response came; returns what may leave now, in order."""
        self._held[key].append(response)
        if final:
            self._finished.add(key)
        return self._release()

    def _release(self) -> list[tuple[K, T]]:
        released: list[tuple[K, T]] = []
        while self._order:
            key = self._order[0]
            released += [(key, response) for response in self._held[key]]
            self._held[key] = []
            if key not in self._finished:
                break
            self._order.popleft()
            self._finished.discard(key)
            del self._held[key]
        return released
