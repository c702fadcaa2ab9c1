"""What a trial's answers come to: rates while the load was constant, and percentiles of the measured requests."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from argosy.bench.answers import Answer
from argosy.bench.budgets import Budget
from argosy.bench.plan import Extent
from argosy.bench.results import Percentiles

_PERCENTS = (50, 90, 95, 99)
_MESSAGE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Trial:
    """The answers of one trial in the order of sending, and the share of one CPU that the sender used meanwhile."""

    answers: Sequence[Answer]
    extent: Extent
    sender_cpu: float = 0.0
    started: float = 0.0

    @property
    def measured(self) -> Sequence[Answer]:
        """Return the answers that are measured, complete or not."""
        return self.answers[self.extent.lead : self.extent.lead + self.extent.measured]

    @property
    def complete(self) -> list[Answer]:
        """Return the measured answers that are complete."""
        return [answer for answer in self.measured if not answer.error]

    @property
    def errors(self) -> dict[str, int]:
        """Return how many of all answers are incomplete, by the reason."""
        return dict(Counter(answer.error[:_MESSAGE_LENGTH] for answer in self.answers if answer.error))


@dataclass(frozen=True, slots=True)
class Rates:
    """Amounts a second while the load was constant: from the first measured request to the last one that is sent."""

    tokens: float
    requests: float
    goodput: float


def rates(trial: Trial, budget: Budget) -> Rates:
    """Return the rates of a trial; all are 0 where no time passed.

    Tokens count when they arrive, those of requests outside of the measured ones too: of a stream whose chunks have
    several tokens, each chunk has an equal part.
    """
    begin, end = trial.answers[trial.extent.lead].intended, trial.answers[-1].intended
    if end <= begin:
        return Rates(0.0, 0.0, 0.0)
    complete = [answer for answer in trial.answers if not answer.error]
    tokens = sum(_tokens_between(answer, begin, end) for answer in complete)
    answered = [answer for answer in complete if begin < answer.end <= end]
    good = sum(budget.is_met(answer) for answer in answered)
    seconds = end - begin
    return Rates(tokens / seconds, len(answered) / seconds, good / seconds)


def _tokens_between(answer: Answer, begin: float, end: float) -> float:
    within = sum(begin < arrival <= end for arrival in answer.arrivals)
    return answer.output_tokens * within / len(answer.arrivals)


@dataclass(slots=True)
class Latencies:
    """Latencies of complete answers, of one trial or of several, in seconds."""

    first_token: list[float] = field(default_factory=list)
    per_token: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    send_delay: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> "Latencies":
        """Return the latencies of complete answers."""
        latencies = cls()
        for answer in answers:
            latencies.first_token.append(answer.time_to_first_token)
            latencies.gaps += answer.gaps()
            latencies.total.append(answer.latency)
            latencies.send_delay.append(answer.sent - answer.intended)
            if answer.time_per_output_token is not None:
                latencies.per_token.append(answer.time_per_output_token)
        return latencies


def percentiles(seconds: Sequence[float]) -> Percentiles | None:
    """Return mean and percentiles in seconds, or None where nothing was measured."""
    if not seconds:
        return None
    values = np.percentile(seconds, _PERCENTS)
    return Percentiles(float(np.mean(seconds)), *(float(value) for value in values))
