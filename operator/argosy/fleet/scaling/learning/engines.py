"""What is learnt of engines that batch token by token: how they are used, and how long their steps take."""

from dataclasses import dataclass
from math import exp

from argosy.fleet.scaling.capacity.engine import Engine
from argosy.fleet.scaling.capacity.service import Batches, Service
from argosy.fleet.signals.signals import Signals

_FOLLOW_S = 60.0
_FADES_S = 1800.0
_LEAST_IN_USE = 0.05
"""Of the KV cache, from which on it tells how many sequences it has room for."""
_WEIGHT = 0.1
"""A step is evidence of less than an execution: many follow each other within a second."""


@dataclass(frozen=True, slots=True)
class EngineUse:
    """Of one engine, on average: `running` sequences, `generated` tokens and `completed` requests a second, and the
    share of time in which it is `busy`. `slots`: the most sequences at once, by the share of the KV cache that those
    take which run; 0 before that is known. `sampled`: sequences that run, as of a moment as long ago as the middle of
    what rates are over. `known_s`: for how long all this has been known.
    """

    running: float
    generated: float
    completed: float
    busy: float
    slots: float
    sampled: float
    known_s: float

    @staticmethod
    def after(before: "EngineUse | None", signals: Signals, elapsed_s: float) -> "EngineUse | None":
        """Once more was measured; as before where engines tell nothing of themselves."""
        found = _seen(signals)
        if found is None or before is None:
            return found or before
        follow = max(1 - exp(-elapsed_s / _FOLLOW_S), elapsed_s / (before.known_s + elapsed_s))
        delay = 1 - exp(-elapsed_s / (signals.window_s / 2))
        sampled = before.sampled + delay * (found.sampled - before.sampled)
        return EngineUse(
            before.running + follow * (sampled - before.running),
            before.generated + follow * (found.generated - before.generated),
            before.completed + follow * (found.completed - before.completed),
            before.busy + follow * (found.busy - before.busy),
            max(found.slots, before.slots * exp(-elapsed_s / _FADES_S)),
            sampled,
            before.known_s + elapsed_s,
        )

    def batches(self, window_s: float, elapsed_s: float) -> Batches | None:
        """Its steps, as executions whose rows are sequences; none as long as it is little known."""
        if self.known_s < window_s or min(self.running, self.generated, self.busy) <= 0:
            return None
        running = max(1.0, self.running / self.busy)
        seconds = self.running / self.generated
        return Batches(running, 1.0, seconds, self.busy * elapsed_s / seconds * _WEIGHT)

    def engine(self, service: Service | None) -> Engine | None:
        """What it holds follows from that; None as long as too little is known."""
        if service is None or self.slots <= 0 or self.completed <= 0 or self.generated <= 0:
            return None
        return Engine(service, self.slots, self.generated / self.completed)


def _seen(signals: Signals) -> EngineUse | None:
    if signals.engine_running is None or signals.tokens is None or signals.completions is None or not signals.servers:
        return None
    servers = signals.servers
    running, cache = signals.engine_running / servers, signals.kv_cache or 0.0
    slots = max(1.0, running / cache) if cache >= _LEAST_IN_USE else 0.0
    busy = 1.0 if signals.busy is None else signals.busy
    return EngineUse(running, signals.tokens / servers, signals.completions / servers, busy, slots, running, 0.0)
