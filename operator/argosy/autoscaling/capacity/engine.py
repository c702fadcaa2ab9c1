"""How many requests a second one engine holds that batches token by token, as vLLM does.

An engine runs up to `slots` sequences together, and a step, in which each gets one token, takes longer the more they
are; what prompts take is part of it, since steps wait for them. So a sequence holds its slot for `tokens` steps, the
slots are the servers of a queue (Erlang C), and who finds none free waits for its first token. Prompts wait for each
other, too.
"""

from math import inf, log

from msgspec import Struct

from argosy.autoscaling.capacity.queueing import erlang_c
from argosy.autoscaling.capacity.service import Service

_STEPS = 24
_HARDLY = 0.3
"""The share of an engine's time that prompts may take whatever the targets: with less of it hardly one waits for
another, so that more replicas make nothing faster.
"""


class Engine(Struct, frozen=True):
    """`service`: seconds of a step by the sequences that run. `slots`: the most of them. `tokens`: of a request, whose
    prompt takes `prompt_s`; 0 where that is not known.
    """

    service: Service
    slots: float
    tokens: float
    prompt_s: float = 0.0

    @property
    def most(self) -> float:
        """Requests a second with all slots in use."""
        return self.slots / (self.tokens * self.service.seconds(self.slots))

    def running(self, rate: float) -> float:
        """Sequences at once, on average, at so many requests a second; each has as many others beside it."""
        steps = rate * self.tokens
        left = 1 - steps * self.service.per_row
        return steps * self.service.seconds(1.0) / left if left > 0 else inf

    def wait(self, rate: float, share: float) -> float:
        """Return seconds that `share` of the requests wait at most for a slot."""
        slots, running = max(1, round(self.slots)), self.running(rate)
        full = erlang_c(slots, running)
        if full <= 1 - share:
            return 0.0
        holds = self.tokens * self.service.seconds(1.0 + running)
        return holds / (slots - running) * log(full / (1 - share)) if running < slots else inf

    def prefill(self, rate: float, share: float) -> float:
        """Return seconds until the prompt is done for `share` of the requests at most, behind those of others
        (M/M/1).
        """
        left = 1 - rate * self.prompt_s
        if left <= 0:
            return inf
        waits = (1 - left) / (1 - share)
        return self.prompt_s * (1 + (log(waits) / left if waits > 1 else 0.0))

    def held(self, busy: float, limits: tuple[tuple[float, float], ...]) -> float:
        """Return the most requests a second with at most the share `busy` of the slots in use, and with limits (share
        of requests, seconds) of the time to the first token.
        """
        low, high = 0.0, self.most
        for _ in range(_STEPS):
            rate = (low + high) / 2
            holds = self.running(rate) <= busy * self.slots and all(self._in_time(rate, *each) for each in limits)
            low, high = (rate, high) if holds else (low, rate)
        return low

    def _in_time(self, rate: float, share: float, longest: float) -> bool:
        prefill = 0.0 if rate * self.prompt_s <= _HARDLY else self.prefill(rate, share)
        return self.wait(rate, share) + prefill <= longest
