"""Wald's sequential probability ratio test: which of two hypotheses a growing sample proves.

After each reading the logarithm of the likelihood ratio of the hypotheses is compared with two bounds. With a
confidence of c, a true hypothesis is rejected with a probability of at most (1 - c) / c, however often the test looks,
because the ratio is a martingale; no other test of these error rates needs fewer samples on average.
"""

from dataclasses import dataclass
from enum import Enum
from math import ceil, log


class Decision(Enum):
    """What a test has proven."""

    ACCEPTABLE = "acceptable"
    UNACCEPTABLE = "unacceptable"
    OPEN = "open"


def bound(confidence: float) -> float:
    """Return the log likelihood ratio that proves a hypothesis. `confidence` is between 0.5 and 1."""
    return log(confidence / (1 - confidence))


def decision(log_ratio: float, confidence: float) -> Decision:
    """Return what a log likelihood ratio proves: a positive one speaks for the unacceptable hypothesis."""
    if log_ratio >= bound(confidence):
        return Decision.UNACCEPTABLE
    return Decision.ACCEPTABLE if log_ratio <= -bound(confidence) else Decision.OPEN


@dataclass(frozen=True, slots=True)
class RateTest:
    """Whether events, such as failures, have the rate `acceptable` or `unacceptable` (0 to 1, the latter higher)."""

    acceptable: float
    unacceptable: float
    confidence: float

    def log_ratio(self, events: float, samples: float) -> float:
        """Return the log likelihood ratio of so many events among the samples."""
        per_event = log(self.unacceptable / self.acceptable)
        per_other = log((1 - self.unacceptable) / (1 - self.acceptable))
        return events * per_event + (samples - events) * per_other

    def decide(self, events: float, samples: float) -> Decision:
        """Return what the sample proves."""
        return decision(self.log_ratio(events, samples), self.confidence)

    def progress(self, events: float, samples: float) -> float:
        """Return the log likelihood ratio as a part of its bound: 1 proves the unacceptable rate, -1 the other one."""
        return self.log_ratio(events, samples) / bound(self.confidence)

    @property
    def fewest_samples(self) -> int:
        """The samples without any event that prove the acceptable rate."""
        return ceil(bound(self.confidence) / log((1 - self.acceptable) / (1 - self.unacceptable)))


@dataclass(frozen=True, slots=True)
class MeanTest:
    """Whether the mean of a normal distribution is `acceptable` or `unacceptable`, the latter higher."""

    acceptable: float
    unacceptable: float
    confidence: float

    def decide(self, mean: float, variance: float) -> Decision:
        """Return what an estimate of the mean, with its variance, proves."""
        if variance <= 0:
            return Decision.UNACCEPTABLE if mean > self._middle else Decision.ACCEPTABLE
        return decision(self._log_ratio(mean, variance), self.confidence)

    def progress(self, mean: float, variance: float) -> float:
        """Return the log likelihood ratio as a part of its bound: 1 proves the unacceptable mean, -1 the other one."""
        if variance <= 0:
            return 1.0 if mean > self._middle else -1.0
        return self._log_ratio(mean, variance) / bound(self.confidence)

    @property
    def _middle(self) -> float:
        return (self.acceptable + self.unacceptable) / 2

    def _log_ratio(self, mean: float, variance: float) -> float:
        return (self.unacceptable - self.acceptable) * (mean - self._middle) / variance
