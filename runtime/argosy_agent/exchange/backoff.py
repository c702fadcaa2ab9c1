"""Pauses between tries that grow, with some chance in them so that not all agents of a fleet try at once. Pure."""

import random
from dataclasses import dataclass, field

from argosy_common.backoff import backoff_s


@dataclass(slots=True)
class Backoff:
    """Pauses in seconds: `first`, then twice as long each time up to `most`, each cut by up to half at random."""

    first: float
    most: float
    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next(self) -> float:
        """Return the pause before the next try."""
        self.tries += 1
        return backoff_s(self.tries, self.first, self.most) * self.chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went well: begin with `first` again."""
        self.tries = 0
