"""The members that an activator knows, from the parts of its configuration, and the server that is tried next. Pure."""

from collections.abc import Sequence

from argosy_agent.contract.activation import Activation, ActivationPart, Endpoint

ASIDE_S = 1.0
"""For how long a server that could not be reached is not tried again: it may be just about to listen, or be gone."""


class Parts:
    """The newest text of each part. `count` is their number, by the first part, which always exists."""

    def __init__(self) -> None:
        self.count = 1
        self._parts: dict[int, ActivationPart] = {}

    def take(self, number: int, part: ActivationPart) -> Activation | None:
        """Store the `number`th part, and return all members as of now.

        Return None where a part is missing, or belongs to another number of parts: the members of before stay, since a
        member that is in no part now may be in a part that is still to come.
        """
        self._parts[number] = part
        if number == 0:
            self.count = part.parts
        parts = [self._parts.get(at) for at in range(self.count)]
        complete = [
            part for at, part in enumerate(parts) if part is not None and (part.number, part.parts) == (at, self.count)
        ]
        if len(complete) < self.count:
            return None
        return Activation(tuple(member for part in complete for member in part.members))


class Servers:
    """Servers in turn, except those that could not be reached a moment ago. Times are seconds of one steady clock."""

    def __init__(self) -> None:
        self._aside: dict[Endpoint, float] = {}
        self._turn = 0

    def pick(self, endpoints: Sequence[Endpoint], now: float) -> Endpoint | None:
        """Return the server to try next; None where there is none, or none may be tried yet."""
        candidates = [endpoint for endpoint in endpoints if self._aside.get(endpoint, now) <= now]
        if not candidates:
            return None
        self._turn += 1
        return candidates[self._turn % len(candidates)]

    def set_aside(self, endpoint: Endpoint, now: float) -> None:
        """Skip a server that could not be reached for `ASIDE_S`."""
        self._aside = {server: until for server, until in self._aside.items() if until > now}
        self._aside[endpoint] = now + ASIDE_S

    def next_try(self, endpoints: Sequence[Endpoint]) -> float | None:
        """Return when the first of these servers that are skipped may be tried again; None where none is skipped."""
        return min((self._aside[endpoint] for endpoint in endpoints if endpoint in self._aside), default=None)
