"""What is learnt of engines that batch token by token: how they are used, how long their steps take, and a prompt."""

from dataclasses import dataclass, replace
from math import exp

from argosy.fleet.scaling.capacity.engine import Engine
from argosy.fleet.scaling.capacity.service import Batches, Service
from argosy.fleet.signals.signals import Signals

_FOLLOW_S = 60.0
_FADES_S = 1800.0
_LEAST_IN_USE = 0.05
"""Of the KV cache, from which on it tells how many sequences it has room for."""
_LEAST_FIXED = 0.1
"""Of a step's fixed time: so much stays, whatever prompts take."""
_WEIGHT = 0.1
"""A step is evidence of less than an execution: many follow each other within a second."""


@dataclass(frozen=True, slots=True)
class EngineUse:
    """Of one engine, on average: `running` sequences and their `square`, `generated` tokens and `completed` requests a
    second, and the share of time in which it is `busy`. `slots`: the most sequences at once, by the share of the KV
    cache that those take which run; 0 before that is known. `sampled`: sequences that run, as of a moment as long ago
    as the middle of what rates are over. `prompt_s`: what a prompt takes; 0 before that is known. `known_s`: for how
    long all this has been known.
    """

    running: float
    square: float
    generated: float
    completed: float
    busy: float
    slots: float
    sampled: float
    prompt_s: float = 0.0
    known_s: float = 0.0

    @staticmethod
    def after(before: "EngineUse | None", signals: Signals, elapsed_s: float) -> "EngineUse | None":
        """Once more was measured; as before where engines tell nothing of themselves."""
        found = _seen(signals)
        if found is None or before is None:
            return found or before
        follow = max(1 - exp(-elapsed_s / _FOLLOW_S), elapsed_s / (before.known_s + elapsed_s))
        delay = 1 - exp(-elapsed_s / (signals.window_s / 2)) if signals.between_tokens.mean is None else 1.0
        sampled = before.sampled + delay * (found.sampled - before.sampled)
        prompt_s = before.prompt_s
        if found.prompt_s:
            prompt_s += (follow if prompt_s else 1.0) * (found.prompt_s - prompt_s)
        return EngineUse(
            before.running + follow * (sampled - before.running),
            before.square + follow * (sampled * sampled - before.square),
            before.generated + follow * (found.generated - before.generated),
            before.completed + follow * (found.completed - before.completed),
            before.busy + follow * (found.busy - before.busy),
            max(found.slots, before.slots * exp(-elapsed_s / _FADES_S)),
            sampled,
            prompt_s,
            before.known_s + elapsed_s,
        )

    @property
    def rows(self) -> float:
        """Sequences of a step as a token finds them: its own, and those of requests that know nothing of it."""
        found = 1.0 + self.square / self.running if self.running > 0 else 1.0
        return min(found, self.slots) if self.slots else found

    def batches(self, window_s: float, elapsed_s: float) -> Batches | None:
        """Its steps, as executions whose rows are sequences; none as long as it is little known."""
        if self.known_s < window_s or min(self.running, self.generated, self.busy) <= 0:
            return None
        seconds = self.running / self.generated
        return Batches(self.rows, 1.0, seconds, self.busy * elapsed_s / seconds * _WEIGHT)

    def engine(self, service: Service | None) -> Engine | None:
        """What it holds follows from that; None as long as too little is known."""
        if service is None or self.slots <= 0 or self.completed <= 0 or self.generated <= 0:
            return None
        tokens = self.generated / self.completed
        return Engine(self._with_prompts(service, tokens), self.slots, tokens, self.prompt_s)

    def _with_prompts(self, service: Service, tokens: float) -> Service:
        """While a sequence generates, each of the others has a prompt too, which a step waits for: so it grows by a
        token's share of that at least, also where too few ran together for it to be seen.
        """
        share = self.prompt_s / tokens
        if share <= service.per_row:
            return service
        fixed = max(_LEAST_FIXED * service.fixed, service.seconds(self.rows) - share * self.rows)
        return replace(service, fixed=fixed, per_row=share)


def _seen(signals: Signals) -> EngineUse | None:
    if signals.engine_running is None or signals.tokens is None or signals.completions is None or not signals.servers:
        return None
    servers, between = signals.servers, signals.between_tokens.mean
    sampled, cache = signals.engine_running / servers, signals.kv_cache or 0.0
    slots = max(1.0, sampled / cache) if cache >= _LEAST_IN_USE else 0.0
    generated, completed = signals.tokens / servers, signals.completions / servers
    # Little's law on what is counted, which is exact; a gauge is of a moment
    running = sampled if between is None else between * generated
    busy = 1.0 if signals.busy is None else signals.busy
    return EngineUse(
        running, running * running, generated, completed, busy, slots, running, _prompt_s(signals, completed)
    )


def _prompt_s(signals: Signals, completed: float) -> float:
    """Of the time to the first token `T` what is no waiting for other prompts: `P`, where `T = P / (1 - λ·P)`, as in
    a queue of one server (M/M/1). 0 where nobody knows, as while requests wait for a slot.
    """
    first = signals.first_token.mean
    if first is None or (signals.engine_waiting or 0.0) > signals.servers:
        return 0.0
    return first / (1 + completed * first)
