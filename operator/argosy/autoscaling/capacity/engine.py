"""The capacity, in requests per second, of an engine with continuous batching such as vLLM, estimated from its metrics.

An engine runs up to `slots` sequences concurrently. A step generates one token for each; its time grows with their
number, and prompts delay it. So the model is a queue with `slots` servers: a request occupies a slot for as many steps
as it has tokens, and without a free slot it waits for its first token. Prompts also wait for each other.
"""

from math import exp, inf, log, sqrt

from msgspec import Struct

from argosy.autoscaling.capacity.options import Limit
from argosy.autoscaling.capacity.queueing import Replica, highest
from argosy.autoscaling.capacity.service import Batches, Service
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.settings import EVIDENCE, LEAST_CACHE, MOST_SLOTS, SLOTS_S, STEP_WEIGHT, WEIGHT

_MOST_PROMPTS = 0.9
"""Largest share of time spent on prompts for which the formula of their queue is evaluated."""


class Engine(Struct, frozen=True):
    """An engine as a `replica` that executes each request in a slot, after its prompt, which takes `prompt_s`.

    `tokens`: those that a request generates, on average.
    """

    replica: Replica
    prompt_s: float = 0.0
    tokens: float = 1.0

    @property
    def most(self) -> float:
        """Requests a second with all slots in use."""
        return self.replica.most

    def first_token(self, rate: float, share: float) -> float:
        """Return the quantile `share` of the time to first token, in seconds: the wait for a slot, and for the prompts
        of other requests (M/M/1).
        """
        left = 1 - rate * self.prompt_s
        if left <= 0:
            return inf
        waits = (1 - left) / (1 - share)
        prefill_s = self.prompt_s * (1 + (log(waits) / left if waits > 1 else 0.0))
        return prefill_s + self.replica.latency(rate, share, waiting=True)

    def within(self, limit: Limit, most: float) -> float:
        """Return the largest request rate, at most `most`, that meets a limit of the time to first token."""
        return highest(most, lambda rate: self.first_token(rate, limit.share) <= limit.seconds)

    def between_tokens(self, rate: float) -> float:
        """Return the mean seconds from one token of a request to its next one, with as many others as run at this rate
        on average (by Little's law), and their prompts.
        """
        service = self.replica.service
        left = 1 - rate * service.seconds(1.0) * service.contention
        return (service.seconds(1.0) / left - self.prompt_s) / self.tokens if left > 0 else inf


class EngineUse(Struct, frozen=True):
    """Measured use of one engine. `slots`: the most concurrent sequences, by the share of the KV cache in use (0 before
    that is known); `tokens`: their mean over the latest `requests`; `prompt_s`: mean seconds of the latest `prompts`.
    """

    slots: float = 0.0
    tokens: float = 0.0
    requests: float = 0.0
    prompt_s: float = 0.0
    prompts: float = 0.0

    def after(self, signals: Signals, elapsed_s: float, *, queued: bool) -> "EngineUse":
        """Return the use updated with new signals. `queued`: requests waited for a slot in the window, so that prompt
        times cannot be derived from the time to first token.
        """
        running, cache, came = _running(signals), signals.kv_cache or 0.0, (signals.completions or 0.0) * elapsed_s
        slots = self.slots * exp(-elapsed_s / SLOTS_S)
        if running is not None and cache >= LEAST_CACHE:
            slots = max(slots, 1.0, min(MOST_SLOTS, (signals.engine_running or 0.0) / signals.servers / cache))
        if running is None or not came:
            return EngineUse(slots, self.tokens, self.requests, self.prompt_s, self.prompts)
        requests, prompts, prompt_s = self.requests + came, self.prompts, self.prompt_s
        tokens = self.tokens + came / requests * ((signals.tokens or 0.0) * elapsed_s / came - self.tokens)
        measured_s = None if queued else _prompt_s(signals)
        if measured_s is not None:
            prompts += came
            prompt_s += came / prompts * (measured_s - prompt_s)
        elif not prompts and signals.first_token.mean is not None:
            # Until anything else says what prompts take, they are taken to be all that keeps the engine busy: steps
            # that are thought too short are soon found out, a fleet that is too large never is.
            prompt_s = _busy(signals) * signals.servers * elapsed_s / came
        return EngineUse(slots, tokens, min(requests, EVIDENCE), prompt_s, min(prompts, EVIDENCE))

    def batches(self, signals: Signals, elapsed_s: float) -> Batches | None:
        """Return the steps as executions whose rows are sequences: the one of the token, and the mean number of others.
        Return None before enough requests were answered.

        Each prompt delays `r - 1` of `r` sequences, and the `q` whose prompts it waited for itself (M/D/1). So a token
        waits for `λ·(r - 1 + q)/g` prompts, with `g` tokens and `λ` prompts per second.
        """
        running, busy = _running(signals), _busy(signals)
        if not running or not signals.tokens or not busy or self.requests < WEIGHT:
            return None
        seconds, completions = running * signals.servers / signals.tokens, signals.completions or 0.0
        load = min(_MOST_PROMPTS, completions / signals.servers * self.prompt_s)
        rows = min(1.0 + running, self.slots) if self.slots else 1.0 + running
        prompts = completions / signals.tokens * (rows - 1 + load * load / (2 * (1 - load)))
        return Batches(rows, 1.0, seconds, busy * elapsed_s / seconds * STEP_WEIGHT, prompts)

    def engine(self, service: Service | None) -> Engine | None:
        """Return the queueing model of the engine; None before enough was measured."""
        if service is None or min(self.slots, self.tokens) <= 0:
            return None
        # While a sequence generates its tokens, each of the others has a prompt too, which it waits for.
        alone, other = (self.tokens * seconds + self.prompt_s for seconds in (service.seconds(1.0), service.per_row))
        if alone <= 0:
            return None
        slots = max(1, round(self.slots))
        return Engine(Replica(Service(alone, 0.0, other / alone), slots), self.prompt_s, self.tokens)


def _running(signals: Signals) -> float | None:
    """Return the mean number of running sequences of one engine; None without signals of an engine."""
    if signals.engine_running is None or signals.tokens is None or signals.completions is None or not signals.servers:
        return None
    if signals.between_tokens.mean is None:
        return signals.engine_running / signals.servers
    # Little's law on what is counted, which is exact; a gauge is of a moment.
    return signals.between_tokens.mean * signals.tokens / signals.servers


def _busy(signals: Signals) -> float:
    return 1.0 if signals.busy is None else signals.busy


def engine_use(signals: Signals, elapsed_s: float, *, queued: bool) -> EngineUse | None:
    """Return the use of an engine, measured for the first time; None without signals of an engine."""
    return EngineUse().after(signals, elapsed_s, queued=queued) if _running(signals) is not None else None


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
