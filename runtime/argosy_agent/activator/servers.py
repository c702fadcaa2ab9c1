"""Which of the servers that have a model is asked next. Time is an argument, in seconds of one steady clock."""

from collections.abc import Sequence

from argosy_agent.contract.activation import Endpoint

ASIDE_S = 1.0
"""For how long a server that could not be reached is not asked again: it may be just about to listen, or be gone."""


class Servers:
    """One after the other, but for those that could not be reached a moment ago."""

    def __init__(self) -> None:
        self._aside: dict[Endpoint, float] = {}
        self._turn = 0

    def pick(self, endpoints: Sequence[Endpoint], now: float) -> Endpoint | None:
        """Return the next one to ask; None where there is none, or none may be asked yet."""
        found = [each for each in endpoints if self._aside.get(each, now) <= now]
        if not found:
            return None
        self._turn += 1
        return found[self._turn % len(found)]

    def set_aside(self, endpoint: Endpoint, now: float) -> None:
        """It could not be reached."""
        self._aside = {each: until for each, until in self._aside.items() if until > now}
        self._aside[endpoint] = now + ASIDE_S

    def next_try(self, endpoints: Sequence[Endpoint]) -> float | None:
        """When one of those set aside may be asked again; None where none of these is."""
        return min((self._aside[each] for each in endpoints if each in self._aside), default=None)
