"""When a sequence ends for lack of requests, and when one has waited in the backlog for too long."""

from heapq import heappop, heappush

from .sequence import Sequence


class IdleSequences:
    """Sequences with a slot and without a request; `limit_ns`: how long each may be."""

    def __init__(self, limit_ns: int) -> None:
        self._limit = limit_ns
        # In the order in which they became idle, which is that of their ends.
        self._since: dict[Sequence, int] = {}

    def add(self, sequence: Sequence, now: int) -> None:
        """Note a sequence that has no request from `now` on."""
        self._since[sequence] = now

    def remove(self, sequence: Sequence) -> None:
        """Note a sequence that has a request, or has ended."""
        self._since.pop(sequence, None)

    @property
    def next(self) -> int | None:
        """Time at which the next one ends; None without one."""
        for since in self._since.values():
            return since + self._limit
        return None

    def ended(self, now: int) -> list[Sequence]:
        """Remove and return the sequences that have been idle for too long."""
        ended: list[Sequence] = []
        for sequence, since in self._since.items():
            if since + self._limit > now:
                break
            ended.append(sequence)
        for sequence in ended:
            del self._since[sequence]
        return ended


class BacklogTimeouts:
    """The timeouts of sequences in the backlog: the earliest of their requests' own."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sequence]] = []
        self._last = 0

    def add(self, sequence: Sequence, expires: int) -> None:
        """Let the wait of a sequence end at `expires`, unless it ends before."""
        if not sequence.expires or expires < sequence.expires:
            sequence.expires = expires
            self._last += 1
            heappush(self._heap, (expires, self._last, sequence))

    @property
    def next(self) -> int | None:
        """Time of the next timeout; None without one."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def expired(self, now: int) -> list[Sequence]:
        """Remove and return the sequences whose wait has ended."""
        expired: list[Sequence] = []
        self._skip()
        while self._heap and self._heap[0][0] <= now:
            expired.append(heappop(self._heap)[2])
            self._skip()
        return expired

    def _skip(self) -> None:
        """Remove entries of sequences that wait no more, or that expire before."""
        while self._heap and self._heap[0][2].expires != self._heap[0][0]:
            heappop(self._heap)
