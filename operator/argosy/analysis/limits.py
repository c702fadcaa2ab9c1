"""The largest duration of a candidate for one of the stable revision."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DurationLimit:
    """A ratio, and a difference in seconds that passes whatever its ratio.

    A process that works seldom takes longer for each execution, since its caches are cold: of a model that answers in
    50 µs twice as long, which no client notices.
    """

    ratio: float
    tolerance_s: float = 0.0

    def of(self, seconds: float) -> float:
        """Return the limit for a duration of the stable revision."""
        return max(self.ratio * seconds, seconds + self.tolerance_s)

    @property
    def text(self) -> str:
        """The limit in words."""
        more = f", or {self.tolerance_s * 1000:g} ms more" if self.tolerance_s else ""
        return f"<= {self.ratio:g} times the stable revision's{more}"
