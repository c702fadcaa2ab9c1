"""Budgets of latency, for goodput: requests a second that stay within all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.api.values.quantity import parse_duration
from argosy.bench.answers import Answer

NAMES = ("ttft", "tpot", "latency")


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that a request may take until its first token, from token to token, and in all. None: no limit."""

    ttft: float | None = None
    tpot: float | None = None
    latency: float | None = None

    def __bool__(self) -> bool:
        return (self.ttft, self.tpot, self.latency) != (None, None, None)

    def is_met(self, answer: Answer) -> bool:
        """Return whether a complete answer is within the budget."""
        measured = (answer.time_to_first_token, answer.time_per_output_token or 0.0, answer.latency)
        limits = (self.ttft, self.tpot, self.latency)
        return all(limit is None or value <= limit for value, limit in zip(measured, limits, strict=True))


NO_BUDGET = Budget()


def parse_budgets(texts: Sequence[str]) -> Budget:
    """Return the budget of texts such as "ttft=200ms". Raises ValueError with what is wrong."""
    limits: dict[str, float] = {}
    for text in texts:
        name, separator, duration = text.partition("=")
        if not separator or name not in NAMES:
            raise ValueError(f"{text!r} is no budget: write {', '.join(f'{name}=200ms' for name in NAMES)}")
        limits[name] = parse_duration(duration) / 1000
    return Budget(**limits)
