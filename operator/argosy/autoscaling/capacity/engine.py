"""How many requests a second one engine holds that batches token by token, as vLLM does, estimated from its metrics.

An engine runs up to `slots` sequences together; a step, in which each gets one token, takes longer the more they are,
and waits for prompts. A sequence holds its slot for `tokens` steps, the slots are the servers of a queue (Erlang C),
and a request that finds none free waits for its first token. Prompts wait for each other, too.
"""

from math import exp, inf, log, sqrt

from msgspec import Struct, structs

from argosy.autoscaling.capacity.queueing import erlang_c
from argosy.autoscaling.capacity.service import Batches, Service
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.settings import ENGINE_S, EVIDENCE, LEAST_CACHE, PROMPTS, STEP_WEIGHT

_HALVINGS = 24


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
        """Return the sequences at once, on average, at so many requests a second."""
        steps = rate * self.tokens
        left = 1 - steps * self.service.per_row
        return steps * self.service.seconds(1.0) / left if left > 0 else inf

    def wait(self, rate: float, share: float) -> float:
        """Return seconds that `share` of the requests wait at most for a slot."""
        slots, running = max(1, round(self.slots)), self.running(rate)
        full = erlang_c(slots, running)
        if full <= 1 - share:
            return 0.0
        occupied_s = self.tokens * self.service.seconds(1.0 + running)
        return occupied_s / (slots - running) * log(full / (1 - share)) if running < slots else inf

    def prefill(self, rate: float, share: float) -> float:
        """Return seconds until the prompt is done for `share` of the requests, behind those of others (M/M/1)."""
        left = 1 - rate * self.prompt_s
        if left <= 0:
            return inf
        waits = (1 - left) / (1 - share)
        return self.prompt_s * (1 + (log(waits) / left if waits > 1 else 0.0))

    def within(self, busy: float, limits: tuple[tuple[float, float], ...]) -> float:
        """Return the most requests a second with at most the share `busy` of the slots in use, and with limits (share
        of requests, seconds) of the time to the first token.
        """
        low, high = 0.0, self.most
        for _ in range(_HALVINGS):
            rate = (low + high) / 2
            fits = self.running(rate) <= busy * self.slots and all(self._in_time(rate, *limit) for limit in limits)
            low, high = (rate, high) if fits else (low, rate)
        return low

    def _in_time(self, rate: float, share: float, longest: float) -> bool:
        prefill = 0.0 if rate * self.prompt_s <= PROMPTS else self.prefill(rate, share)
        return self.wait(rate, share) + prefill <= longest


class EngineUse(Struct, frozen=True):
    """How one engine is used, on average: `running` sequences and their `square`, tokens `generated` and requests
    `completed` a second, by how many a second more run (`growth`), and the share of time in which it is `busy`.
    `slots`: the most sequences at once, by the share of the KV cache in use; 0 before that is known. `sampled`: running
    sequences as of the middle of the window, `inside`: now.
    `answered`: the latest requests, and their `tokens`. `prompt_s`: seconds of a prompt, from so many `prompts`.
    `measured_s`: seconds for which all this has been known.
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
    measured_s: float = 0.0

    def after(self, signals: Signals, elapsed_s: float, *, queued: bool) -> "EngineUse":
        """Return the use once more was measured. `queued`: requests waited for a slot of late, so that times to the
        first token say nothing of prompts.
        """
        new = engine_use(signals)
        if new is None:
            return self
        measured_s = self.measured_s + elapsed_s
        slowly = max(1 - exp(-elapsed_s / ENGINE_S), elapsed_s / measured_s)
        follow = 1.0 if measured_s <= signals.window_s else slowly
        delay = 1 - exp(-elapsed_s / (signals.window_s / 2)) if signals.between_tokens.mean is None else 1.0
        sampled = self.sampled + delay * (new.sampled - self.sampled)
        growth = (new.inside - self.inside) / elapsed_s
        use = structs.replace(
            self._with_requests(new, None if queued else _prompt_s(signals), signals.servers * elapsed_s),
            running=self.running + follow * (sampled - self.running),
            square=self.square + follow * (sampled * sampled - self.square),
            generated=self.generated + follow * (new.generated - self.generated),
            completed=self.completed + follow * (new.completed - self.completed),
            busy=self.busy + follow * (new.busy - self.busy),
            slots=max(new.slots, self.slots * exp(-elapsed_s / (30 * ENGINE_S))),
            sampled=sampled,
            inside=new.inside,
            growth=self.growth + slowly * (growth - self.growth),
            measured_s=measured_s,
        )
        if signals.first_token.mean is not None and not use.prompts and use.admitted > 0:
            # Until anything else says what prompts take, they are taken to be all that keeps the engine busy: steps
            # that are thought too short are soon found out, a fleet that is too large never is.
            return structs.replace(use, prompt_s=use.busy / use.admitted)
        return use

    def _with_requests(self, new: "EngineUse", prompt_s: float | None, server_s: float) -> "EngineUse":
        """Return it with the sizes of the latest requests, which differ widely."""
        came = new.completed * server_s
        answered, tokens = self.answered + came, self.tokens + new.generated * server_s
        share = min(1.0, EVIDENCE / answered) if answered else 1.0
        use = structs.replace(self, answered=share * answered, tokens=share * tokens)
        if prompt_s is None or not came:
            return use
        prompts = self.prompts + came
        mean = self.prompt_s + (came / prompts if self.prompts else 1.0) * (prompt_s - self.prompt_s)
        return structs.replace(use, prompt_s=mean, prompts=min(prompts, EVIDENCE))

    @property
    def admitted(self) -> float:
        """Requests a second that get a slot."""
        return max(0.0, self.completed + self.growth)

    @property
    def rows(self) -> float:
        """Sequences of a step as a token finds them: its own, and those of independent requests."""
        rows = 1.0 + self.square / self.running if self.running > 0 else 1.0
        return min(rows, self.slots) if self.slots else rows

    def batches(self, window_s: float, elapsed_s: float) -> Batches | None:
        """Return its steps as executions whose rows are sequences; None as long as little is known.

        Of `r` sequences each prompt keeps `r - 1` waiting: a token waits for `λ·(r - 1)/g` prompts, with `g` tokens and
        `λ` prompts a second.
        """
        if self.measured_s < window_s / 2 or min(self.running, self.generated, self.busy) <= 0:
            return None
        seconds, prompts = self.running / self.generated, self.admitted * (self.rows - 1) / self.generated
        return Batches(self.rows, 1.0, seconds, self.busy * elapsed_s / seconds * STEP_WEIGHT, prompts)

    def engine(self, service: Service | None) -> Engine | None:
        """Return the engine, from which follows what it holds; None as long as too little is known."""
        if service is None or min(self.slots, self.answered, self.tokens) <= 0:
            return None
        tokens = self.tokens / self.answered
        # While a sequence generates its tokens, each of the others has a prompt too, which it waits for.
        steps = Service(service.fixed, service.per_row + self.prompt_s / tokens, 0.0)
        return Engine(steps, self.slots, tokens, self.prompt_s)


def engine_use(signals: Signals) -> EngineUse | None:
    """Return what signals say of an engine; None where they say nothing of one."""
    if signals.engine_running is None or signals.tokens is None or signals.completions is None or not signals.servers:
        return None
    servers, between = signals.servers, signals.between_tokens.mean
    sampled, cache = signals.engine_running / servers, signals.kv_cache or 0.0
    slots = max(1.0, sampled / cache) if cache >= LEAST_CACHE else 0.0
    generated, completed = signals.tokens / servers, signals.completions / servers
    # Little's law on what is counted, which is exact; a gauge is of a moment.
    running = sampled if between is None else between * generated
    busy = 1.0 if signals.busy is None else signals.busy
    return EngineUse(running, running * running, generated, completed, busy, slots, running, sampled)


def _prompt_s(signals: Signals) -> float | None:
    """Return the seconds `P` of a prompt, from the time to the first token less that token's step, `T`:
    `T = P + λ·P²/(2·(1 - λ·P))`, as in a queue of one server that takes equally long for each (M/D/1). None while
    requests wait for a slot.
    """
    first, completions = signals.first_token.mean, signals.completions
    if first is None or not completions or (signals.engine_waiting or 0.0) > signals.servers:
        return None
    rate = completions / signals.servers
    took = max(0.0, first - (signals.between_tokens.mean or 0.0))
    half = 1 + rate * took
    return (half - sqrt(half * half - 2 * rate * took)) / rate
