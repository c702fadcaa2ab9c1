"""One request's answer: when its text arrived, and the tokens that the endpoint's usage reports."""

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Answer:
    """Times on the sender's clock, in seconds. `intended` is when the request was to be sent, `sent` when it was.

    All latencies count from `intended`: if the sender or the endpoint is behind, the wait is part of them. Without that
    the requests that a slow endpoint delays are missing from its figures (coordinated omission). `arrivals` are those
    of chunks with text. `error` is empty where the answer is complete.
    """

    intended: float
    sent: float
    arrivals: list[float] = field(default_factory=list)
    end: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    error: str = ""

    @property
    def time_to_first_token(self) -> float:
        """Return the time until the first text."""
        return self.arrivals[0] - self.intended

    @property
    def time_per_output_token(self) -> float | None:
        """Return the mean time from token to token after the first, or None for a single token."""
        if self.output_tokens < 2:
            return None
        return (self.arrivals[-1] - self.arrivals[0]) / (self.output_tokens - 1)

    @property
    def latency(self) -> float:
        """Return the time until the answer was complete."""
        return self.end - self.intended

    def gaps(self) -> list[float]:
        """Return the times between chunks, as a reader sees them; a chunk may have several tokens."""
        return [later - earlier for earlier, later in pairwise(self.arrivals)]
