"""Replies to requests at a constant rate: each with its times, counted by who answered."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor

Values = tuple[int, ...]
"""The values of an answer's tensors: of `e2e/models/version` the version, of an ensemble those of its steps."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A request that was sent and ended at these Unix times. `values` are empty where it failed, with `error`."""

    sent: float
    ended: float
    values: Values
    error: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Of the requests that were sent and answered in a time: their number, and how many of them a candidate met.
    `at_edges`: further requests, of which it is not known whether servers divided them in that time.
    """

    requests: int
    met: int
    at_edges: int

    def deviation(self, share: float) -> float:
        """Return by how many requests the candidate's are surely off its share."""
        return max(0.0, abs(self.met - share * self.requests) - self.at_edges)


@dataclass(slots=True)
class Replies:
    """The replies of one load, known once it has ended."""

    replies: list[Reply] = field(default_factory=list)

    @property
    def failed(self) -> list[Reply]:
        """The requests that failed."""
        return [reply for reply in self.replies if reply.error]

    @property
    def errors(self) -> dict[str, int]:
        """The number of requests by error."""
        return dict(Counter(reply.error for reply in self.failed))

    @property
    def answers(self) -> list[Values]:
        """The answers, each once, in the order in which their first requests were sent."""
        return list(dict.fromkeys(reply.values for reply in sorted(self.replies, key=_sent) if not reply.error))

    def met_by(self, values: Values, *, failures: bool = False) -> list[Reply]:
        """Return the replies with an answer, as they were sent; with `failures` those that failed, too."""
        met = [reply for reply in self.replies if reply.values == values or (failures and reply.error)]
        return sorted(met, key=_sent)

    def split(self, met: Iterable[Reply], since: float, until: float) -> Split:
        """Return how the requests of a time were divided.

        A server divides a request some time between its sending and its end. So of those under way at either edge it
        is not known on which side they were.
        """
        inside = {reply for reply in self.replies if since <= reply.sent and reply.ended <= until}
        return Split(len(inside), len(inside & {*met}), len(self.between(since, until)) - len(inside))

    def between(self, since: float, until: float) -> list[Reply]:
        """Return the requests that servers may have divided in a time."""
        return [reply for reply in self.replies if since <= reply.ended and reply.sent <= until]

    def by_second(self) -> dict[str, dict[int, int]]:
        """Return the number of requests by answer, and by the second after the first one in which they were sent."""
        first = min((reply.sent for reply in self.replies), default=0.0)
        counts: dict[str, Counter[int]] = {}
        for reply in sorted(self.replies, key=_sent):
            name = "failed" if reply.error else "/".join(map(str, reply.values))
            counts.setdefault(name, Counter())[floor(reply.sent - first)] += 1
        return {name: dict(count) for name, count in counts.items()}


def _sent(reply: Reply) -> float:
    return reply.sent
