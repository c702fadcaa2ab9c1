"""The numbers that rules compare with thresholds. Each is of a stage or of its subject; None if it was not measured."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from argosy.autoscaling.metrics.histograms import Distribution

from .subjects import PathStage, Subject

WORTH_S = 0.001
"""Shortest wait that matters, however large its share of a request's time."""
ENGINE_WORTH_S = 0.02
"""Shortest wait in an engine that matters; it takes requests up between two steps, which take some milliseconds."""


def percent(value: float) -> str:
    """Return `64 %`, or `0.4 %` for a small share."""
    return f"{100 * value:.0f} %" if value >= 0.0095 or not value else f"{100 * value:.1f} %"


def seconds(value: float) -> str:
    """Return `1.5 s`, `20 ms` or `0.3 ms`."""
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def number(value: float) -> str:
    """Return `1.2` or `16`."""
    return f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a stage. `says`: a clause with `{value}`; `detail`: returns the parts of the number, in words."""

    says: str
    of: Callable[[Subject, PathStage], float | None]
    written: Callable[[float], str] = percent
    detail: Callable[[Subject, PathStage], str] = lambda *_: ""

    def sentence(self, value: float, subject: Subject, stage: PathStage) -> str:
        """Return the number in words: `requests wait 64 % of their time for an instance`."""
        return self.says.format(value=self.written(value)) + self.detail(subject, stage)


def _wait(stage: PathStage) -> float | None:
    return stage.signals.queue.mean


def stage_time(stage: PathStage) -> float | None:
    """Return the seconds that a request waits and is executed in the stage."""
    wait, compute = _wait(stage), stage.signals.compute
    if wait is not None and compute is not None:
        return wait + compute
    return stage.signals.latency.mean


def stage_share(subject: Subject, stage: PathStage) -> float | None:
    """Return the share (0 to 1) of an ensemble's latency that passes in the stage; None for a model."""
    return _ratio(stage_time(stage), _total(subject)) if subject.is_ensemble else None


def _time_in_words(subject: Subject, stage: PathStage) -> str:
    spent, total = stage_time(stage), _total(subject)
    return "" if spent is None or total is None else f", {seconds(spent)} of {seconds(total)}"


def _total(subject: Subject) -> float | None:
    """Return a request's time: as measured of the ensemble, else by the longest way through its stages."""
    if subject.signals.latency.mean is not None:
        return subject.signals.latency.mean
    return longest_way(subject, [stage_time(stage) for stage in subject.stages])


def longest_way(subject: Subject, lengths: list[float | None]) -> float | None:
    """Return the longest way through the stages, by a length of each. None unless every length is known."""
    ends: list[float] = []
    for stage, length in zip(subject.stages, lengths, strict=True):
        if length is None:
            return None
        ends.append(length + max((ends[index] for index in stage.reads), default=0.0))
    return max(ends, default=None)


def starving_wait(stage: PathStage) -> float | None:
    """Return how long a request waits for an instance, beyond the window that batches are formed in. Seconds."""
    wait = _wait(stage)
    return None if wait is None else max(0.0, wait - (stage.window_s or 0.0))


def _starving_share(_: Subject, stage: PathStage) -> float | None:
    return _ratio(starving_wait(stage), stage_time(stage))


def _gpu(_: Subject, stage: PathStage) -> float | None:
    return _mean(gpu.utilization for gpu in stage.gpus if gpu.utilization is not None)


def _gpu_with_one_less(subject: Subject, stage: PathStage) -> float | None:
    used = _gpu(subject, stage)
    return None if used is None or stage.replicas < 2 else used * stage.replicas / (stage.replicas - 1)


def _gpu_memory(_: Subject, stage: PathStage) -> float | None:
    """Return the share in use of the fullest GPU; None for an engine with a KV cache, which takes all that it may."""
    if stage.signals.kv_cache is not None:
        return None
    shares = [_ratio(gpu.memory_used, gpu.memory_total) for gpu in stage.gpus]
    return max((share for share in shares if share is not None), default=None)


def _batch_fill(_: Subject, stage: PathStage) -> float | None:
    return _ratio(stage.signals.batch, stage.signals.max_batch) if stage.window_s is not None else None


def _largest_batch(_: Subject, stage: PathStage) -> float | None:
    """Return the largest batch; None if requests cannot be joined, or an engine joins them by itself."""
    return stage.signals.max_batch if stage.joins and not _generates(stage) else None


def _window_share(subject: Subject, stage: PathStage) -> float | None:
    """Return the window as a share of the limit of the SLO's longest percentile."""
    budget = _longest(subject)
    return None if budget is None else _ratio(stage.window_s, budget[1])


def _over_budget(name: str, subject: Subject, _: PathStage) -> float | None:
    """Return a duration's worst percentile as a share of its limit in the SLO; `name` as in `Subject` and `Signals`."""
    worst = _worst_percentile(name, subject)
    return None if worst is None else worst[0]


def _percentile_in_words(name: str, subject: Subject, _: PathStage) -> str:
    worst = _worst_percentile(name, subject)
    return "" if worst is None else f", {worst[1]} {seconds(worst[2])} of {seconds(worst[3])}"


def _worst_percentile(name: str, subject: Subject) -> tuple[float, str, float, float] | None:
    """Return the percentile that exceeds its limit the most: the ratio, its name, its value and its limit."""
    limits: Mapping[str, float] = getattr(subject, name)
    durations: Distribution = getattr(subject.signals, name)
    measured = ((percentile, durations.percentile(percentile), most) for percentile, most in limits.items())
    return max(((is_ / most, name, is_, most) for name, is_, most in measured if is_ is not None), default=None)


def _compute_against_budget(subject: Subject, _: PathStage) -> float | None:
    """Return the time of executing, on an ensemble's longest way, as a share of the SLO's longest percentile."""
    budget, compute = _longest(subject), _compute(subject)
    return None if budget is None else _ratio(compute, budget[1])


def _compute_in_words(subject: Subject, _: PathStage) -> str:
    budget, compute = _longest(subject), _compute(subject)
    return "" if budget is None or compute is None else f", {seconds(compute)} of {budget[0]} {seconds(budget[1])}"


def _compute(subject: Subject) -> float | None:
    return longest_way(subject, [stage.signals.compute for stage in subject.stages])


def _longest(subject: Subject) -> tuple[str, float] | None:
    return max(subject.latency.items(), key=lambda item: item[1], default=None)


def _waiting_stages(subject: Subject, _: PathStage) -> float | None:
    """Return the number of stages with one instance for which requests wait a twentieth of the ensemble's time."""
    total = _total(subject) if subject.is_ensemble else None
    if total is None:
        return None
    alone = (stage for stage in subject.stages if stage.instances == 1)
    return float(sum(_waits(subject, stage) and (starving_wait(stage) or 0.0) > 0.05 * total for stage in alone))


def _waits(subject: Subject, stage: PathStage) -> bool:
    share = _starving_share(subject, stage)
    return share is not None and share > 0.3


def engine(subject: Subject) -> PathStage | None:
    """Return the first stage of a language model, whose engine has metrics of its own."""
    return next((stage for stage in subject.stages if _generates(stage)), None)


def _generates(stage: PathStage) -> bool:
    signals = stage.signals
    signs = (signals.tokens, signals.kv_cache, signals.engine_running, signals.between_tokens.mean)
    return any(sign is not None for sign in signs)


def _engine_queue_share(_: Subject, stage: PathStage) -> float | None:
    """Return the share of the time to first token that passes before the engine runs a request."""
    return _ratio(stage.signals.engine_queue.mean, stage.signals.first_token.mean)


def _prompt_s(stage: PathStage) -> float | None:
    """Return the seconds from the start of a request in the engine to its first token."""
    first, waits = stage.signals.first_token.mean, stage.signals.engine_queue.mean
    return None if first is None or waits is None else max(0.0, first - waits)


def _prompt_share(_: Subject, stage: PathStage) -> float | None:
    """Return the share of the time to first token in which the engine works on prompts."""
    return _ratio(_prompt_s(stage), stage.signals.first_token.mean)


def _prompt_in_words(_: Subject, stage: PathStage) -> str:
    signals = stage.signals
    if not signals.prompt_tokens or not signals.completions:
        return ""
    words = f", with {signals.prompt_tokens / signals.completions:.0f} tokens on average"
    cached = _ratio(signals.cached_tokens, signals.prompt_tokens)
    return words if cached is None else f"{words}, {percent(cached)} of which the prefix cache had"


def _preempted(_: Subject, stage: PathStage) -> float | None:
    """Return the preemptions of an answered request, on average."""
    return _ratio(stage.signals.preemptions, stage.signals.completions)


def _sequences_in_words(_: Subject, stage: PathStage) -> str:
    running, servers = stage.signals.engine_running, stage.signals.servers
    return "" if not running or not servers else f", with {number(running / servers)} requests in an engine at once"


def _engine_share(subject: Subject, stage: PathStage) -> float | None:
    """Return the engine's share of a request's time, seen from another stage."""
    other = engine(subject)
    return None if other is None or other is stage else stage_share(subject, other)


def _engine_waiting(subject: Subject, _: PathStage) -> float | None:
    stage = engine(subject)
    return None if stage is None else _starving_share(subject, stage)


def _signal(name: str, _: Subject, stage: PathStage) -> float | None:
    value: float | None = getattr(stage.signals, name)
    return value


def _ratio(part: float | None, total: float | None) -> float | None:
    return part / total if part is not None and total else None


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


STARVING = Measure("requests wait {value} of their time for an instance", _starving_share)
WAIT = Measure("they wait {value}", lambda _, stage: starving_wait(stage), seconds)
BUSY = Measure("its instances are busy {value} of the time", partial(_signal, "busy"))
GPU = Measure("its GPUs are used {value}", _gpu)
GPU_WITH_ONE_LESS = Measure("with one replica less they would be used {value}", _gpu_with_one_less)
GPU_MEMORY = Measure("{value} of a GPU's memory is used", _gpu_memory)
OUT_OF_MEMORY = Measure("{value} requests a second fail for want of memory", partial(_signal, "out_of_memory"), number)
KV_CACHE = Measure("{value} of its KV cache is used", partial(_signal, "kv_cache"))
ENGINE_WAITING = Measure("{value} requests wait in the engine", partial(_signal, "engine_waiting"), number)
BATCH = Measure("batches have {value} rows", partial(_signal, "batch"), number)
LARGEST_BATCH = Measure("they may have {value}", _largest_batch, number)
BATCH_FILL = Measure("batches are filled {value}", _batch_fill)
WINDOW_SHARE = Measure("the window alone is {value} of the SLO's latency", _window_share)
OVER_BUDGET = Measure(
    "latency is {value} of what slo.latency allows",
    partial(_over_budget, "latency"),
    detail=partial(_percentile_in_words, "latency"),
)
FIRST_TOKEN_OVER = Measure(
    "the first token takes {value} of what slo.timeToFirstToken allows",
    partial(_over_budget, "first_token"),
    detail=partial(_percentile_in_words, "first_token"),
)
BETWEEN_TOKENS_OVER = Measure(
    "the time between tokens is {value} of what slo.interTokenLatency allows",
    partial(_over_budget, "between_tokens"),
    detail=partial(_percentile_in_words, "between_tokens"),
)
ENGINE_QUEUE_SHARE = Measure(
    "requests wait in the engine {value} of the time to their first token", _engine_queue_share
)
ENGINE_QUEUE = Measure("they wait {value}", lambda _, stage: stage.signals.engine_queue.mean, seconds)
PROMPT_SHARE = Measure("prompts take {value} of it", _prompt_share, detail=_prompt_in_words)
ENGINE_RUNNING = Measure(
    "{value} requests are generated for", partial(_signal, "engine_running"), number, _sequences_in_words
)
PREEMPTED = Measure("{value} preemptions come to a request", _preempted, number)
COMPUTE_AGAINST_BUDGET = Measure(
    "executing alone takes {value} of what slo.latency allows", _compute_against_budget, detail=_compute_in_words
)
ARRIVALS = Measure("{value} requests arrive a second", partial(_signal, "arrivals"), number)
CACHE_HITS = Measure("the response cache answers {value} of them", partial(_signal, "cache_hits"))
WAITING_STAGES = Measure("{value} stages have one instance that requests wait for", _waiting_stages, number)
STAGE_SHARE = Measure("a request spends {value} of its time there", stage_share, detail=_time_in_words)
ENGINE_SHARE = Measure("the engine takes {value} of a request's time", _engine_share)
ENGINE_STARVING = Measure("requests wait for the engine {value} of their time with it", _engine_waiting)
