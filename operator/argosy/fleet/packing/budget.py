"""A bound on how long a search tries, counted in steps: the answer never depends on how fast the machine is."""

from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """Steps that may still be taken."""

    left: int

    def spend(self) -> bool:
        """Take one step; False when there is none left."""
        self.left -= 1
        return self.left >= 0

    def part(self, most: int) -> "Budget":
        """Set aside at most `most` of the steps, to be given back with `back`."""
        taken = max(0, min(most, self.left))
        self.left -= taken
        return Budget(taken)

    def back(self, part: "Budget") -> None:
        """Take back what `part` did not use."""
        self.left += max(0, part.left)
