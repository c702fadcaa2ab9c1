"""Pauses between tries that grow, with some chance in them so that not all agents of a fleet try at once. Pure."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Pauses in seconds: `first`, then twice as long each time up to `most`, each cut by up to half at random."""

    first: float
    most: float
    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next(self) -> float:
        """The pause before the next try."""
        whole = min(self.first * 2.0**self.tries, self.most)
        self.tries = min(self.tries + 1, 30)
        return whole * self.chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went well: begin with `first` again."""
        self.tries = 0
