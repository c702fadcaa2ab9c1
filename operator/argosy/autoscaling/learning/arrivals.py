"""What came of late, and the rate at which it could have been worked off with nobody waiting for too long.

A burst that is over within seconds needs less than its own rate where requests may wait: whoever serves C a second
works off A requests of w seconds with a delay of at most d if A ≤ C·(w + d), for every w (the delay bound of network
calculus, where A over w is the arrival curve).
"""

from math import inf

from msgspec import Struct

_KEPT_S = 60.0
"""What came before is in the mean of the time since."""


class Arrivals(Struct, frozen=True):
    """Readings, the newest first: (requests, seconds), of about a minute; `mean`: requests a second of them all."""

    readings: tuple[tuple[float, float], ...] = ()
    mean: float = 0.0

    def after(self, rate: float, elapsed_s: float) -> "Arrivals":
        """Once another rate was measured, `elapsed_s` after the last one."""
        if elapsed_s <= 0:
            return self
        count, seconds, kept = rate * elapsed_s, elapsed_s, 0
        for came, lasted in self.readings:
            if seconds >= _KEPT_S:
                break
            count, seconds, kept = count + came, seconds + lasted, kept + 1
        return Arrivals(((rate * elapsed_s, elapsed_s), *self.readings[:kept]), count / seconds)

    def sustained(self, delay_s: float) -> float:
        """Return requests a second that, served steadily, would have kept every wait within `delay_s`; at least the
        mean.
        """
        if not self.readings:
            return inf
        count, seconds, most = 0.0, delay_s, self.mean
        for came, lasted in self.readings:
            count, seconds = count + came, seconds + lasted
            most = max(most, count / seconds)
        return most


NOTHING = Arrivals()
