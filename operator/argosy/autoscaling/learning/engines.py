"""What is learnt of engines that batch token by token: how they are used, how long their steps take, and a prompt."""

from math import exp, sqrt

from msgspec import Struct, structs

from argosy.autoscaling.capacity.engine import Engine
from argosy.autoscaling.capacity.service import Batches, Service
from argosy.autoscaling.metrics.signals import Signals

_FOLLOW_S = 60.0
_FADES_S = 1800.0
_LEAST_IN_USE = 0.05
"""Of the KV cache, from which on it tells how many sequences it has room for."""
_REQUESTS = 400.0
"""So many of the latest tell what a request takes."""
_KNOWN = 0.5
"""Of a window, after which what was measured tells of steps."""
_WEIGHT = 0.1
"""A step is evidence of less than an execution: many follow each other within a second."""


class EngineUse(Struct, frozen=True):
    """Of one engine, on average: `running` sequences and their `square`, `generated` tokens and `completed` requests a
    second, by how many a second more run (`growth`), and the share of time in which it is `busy`. `slots`: the most
    sequences at once, by the share of the KV cache that those take which run; 0 before that is known. `sampled`:
    sequences that run, as of a moment as long ago as the middle of what rates are over. `inside`: sequences that run
    now, on all servers. `answered`: the latest requests, and their `tokens`. `prompt_s`: what a prompt takes, by so
    many `prompts`, of which there are 0 before that is known. `known_s`: for how long all this has been known.
    """

    running: float
    square: float
    generated: float
    completed: float
    busy: float
    slots: float
    sampled: float
    inside: float
    growth: float = 0.0
    prompt_s: float = 0.0
    prompts: float = 0.0
    answered: float = 0.0
    tokens: float = 0.0
    known_s: float = 0.0

    @staticmethod
    def after(
        before: "EngineUse | None", signals: Signals, elapsed_s: float, *, queued: bool = False
    ) -> "EngineUse | None":
        """Once more was measured; as before where engines tell nothing of themselves. `queued`: of late requests waited
        for a slot, so that times to the first token tell nothing of prompts.
        """
        found = _seen(signals)
        if found is None or before is None:
            return found or before
        known_s = before.known_s + elapsed_s
        # Of what began within a window the newest rates are the mean already.
        slowly = max(1 - exp(-elapsed_s / _FOLLOW_S), elapsed_s / known_s)
        follow = 1.0 if known_s <= signals.window_s else slowly
        delay = 1 - exp(-elapsed_s / (signals.window_s / 2)) if signals.between_tokens.mean is None else 1.0
        sampled = before.sampled + delay * (found.sampled - before.sampled)
        growth = (found.inside - before.inside) / elapsed_s / signals.servers
        use = structs.replace(
            before._with_requests(found, None if queued else _prompt_s(signals), signals.servers * elapsed_s),
            running=before.running + follow * (sampled - before.running),
            square=before.square + follow * (sampled * sampled - before.square),
            generated=before.generated + follow * (found.generated - before.generated),
            completed=before.completed + follow * (found.completed - before.completed),
            busy=before.busy + follow * (found.busy - before.busy),
            slots=max(found.slots, before.slots * exp(-elapsed_s / _FADES_S)),
            sampled=sampled,
            inside=found.inside,
            growth=before.growth + slowly * (growth - before.growth),
            known_s=known_s,
        )
        return use if signals.first_token.mean is None or use.prompts else use._all_prompts()

    def _all_prompts(self) -> "EngineUse":
        """As long as nothing else tells of prompts, they are taken to be what keeps engines busy: of steps rather too
        much is hoped for than too little, which a fleet that is too large would never find out.
        """
        return structs.replace(self, prompt_s=self.busy / self.admitted) if self.admitted > 0 else self

    def _with_requests(self, found: "EngineUse", prompt_s: float | None, server_s: float) -> "EngineUse":
        """With what tells of the requests' sizes; so many of the latest count, since sizes differ widely."""
        came = found.completed * server_s
        answered, tokens = self.answered + came, self.tokens + found.generated * server_s
        kept = min(1.0, _REQUESTS / answered) if answered else 1.0
        use = structs.replace(self, answered=kept * answered, tokens=kept * tokens)
        if prompt_s is None or not came:
            return use
        prompts = self.prompts + came
        mean = self.prompt_s + (came / prompts if self.prompts else 1.0) * (prompt_s - self.prompt_s)
        return structs.replace(use, prompt_s=mean, prompts=min(prompts, _REQUESTS))

    @property
    def admitted(self) -> float:
        """Requests a second that get a slot."""
        return max(0.0, self.completed + self.growth)

    @property
    def rows(self) -> float:
        """Sequences of a step as a token finds them: its own, and those of requests that know nothing of it."""
        found = 1.0 + self.square / self.running if self.running > 0 else 1.0
        return min(found, self.slots) if self.slots else found

    def batches(self, window_s: float, elapsed_s: float) -> Batches | None:
        """Return its steps, as executions whose rows are sequences; none as long as it is little known. Of `r`
        sequences each prompt keeps `r - 1` waiting, so that a token waits for `λ·(r - 1)/g` prompts, with `g` tokens
        and `λ` prompts a second.
        """
        if self.known_s < _KNOWN * window_s or min(self.running, self.generated, self.busy) <= 0:
            return None
        seconds, prompts = self.running / self.generated, self.admitted * (self.rows - 1) / self.generated
        return Batches(self.rows, 1.0, seconds, self.busy * elapsed_s / seconds * _WEIGHT, prompts)

    def engine(self, service: Service | None) -> Engine | None:
        """Return the engine, from which what it holds follows; None as long as too little is known."""
        if service is None or min(self.slots, self.answered, self.tokens) <= 0:
            return None
        tokens = self.tokens / self.answered
        # While a sequence generates its tokens, each of the others has a prompt too, which it waits for.
        steps = structs.replace(service, per_row=service.per_row + self.prompt_s / tokens)
        return Engine(steps, self.slots, tokens, self.prompt_s)


def _seen(signals: Signals) -> EngineUse | None:
    if signals.engine_running is None or signals.tokens is None or signals.completions is None or not signals.servers:
        return None
    servers, between, inside = signals.servers, signals.between_tokens.mean, signals.engine_running
    sampled, cache = inside / servers, signals.kv_cache or 0.0
    slots = max(1.0, sampled / cache) if cache >= _LEAST_IN_USE else 0.0
    generated, completed = signals.tokens / servers, signals.completions / servers
    # Little's law on what is counted, which is exact; a gauge is of a moment
    running = sampled if between is None else between * generated
    busy = 1.0 if signals.busy is None else signals.busy
    return EngineUse(running, running * running, generated, completed, busy, slots, running, inside)


def _prompt_s(signals: Signals) -> float | None:
    """Of the time to the first token, less that token's step, `T`, what is no waiting for other prompts: `P`, where
    `T = P + λ·P²/(2·(1 - λ·P))`, as in a queue of one server that takes equally long for each (M/D/1): what takes
    unequally long waits longer, and what servers get in turn waits less. None where nobody knows, as while requests
    wait for a slot.
    """
    first, completions = signals.first_token.mean, signals.completions
    if first is None or not completions or (signals.engine_waiting or 0.0) > signals.servers:
        return None
    rate = completions / signals.servers
    took = max(0.0, first - (signals.between_tokens.mean or 0.0))
    half = 1 + rate * took
    return (half - sqrt(half * half - 2 * rate * took)) / rate
