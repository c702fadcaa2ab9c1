"""Pauses that grow, before something that failed is tried again. Pure."""

import random
from dataclasses import dataclass, field

_DOUBLINGS = 30
"""More make no difference to a pause, and would be too large for a float in the end."""


def backoff_s(failures: int, first_s: float, most_s: float) -> float:
    """Return the pause after consecutive failures: `first_s`, doubled each time, at most `most_s` seconds."""
    return min(first_s * 2.0 ** min(failures - 1, _DOUBLINGS), most_s)


@dataclass(slots=True)
class Backoff:
    """Pauses of `backoff_s`, each cut by up to half at random so that the agents of a fleet do not try all at once."""

    first: float
    most: float
    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next(self) -> float:
        """Return the pause before the next try, in seconds."""
        self.tries += 1
        return backoff_s(self.tries, self.first, self.most) * self.chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin with the first pause again, after a success."""
        self.tries = 0
