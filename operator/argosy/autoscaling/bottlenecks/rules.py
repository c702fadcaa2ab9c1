"""The rules of bottlenecks in one table, the gravest first. Each has a name, tests that all have to pass, and advice.

The thresholds are those of people who run such servers: waiting longer than executing means too few instances; a GPU
is used well from 70 to 90 %; a response cache that answers fewer than 70 % is too small.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from . import measures as m
from .measures import Measure
from .subjects import Lever, PathStage, Subject

SLACK = 0.1
"""Share of its threshold by which a number has to come back behind it before a rule that held is broken."""
STAYS = 1.5
"""How many times as long requests have to be in another stage for it to replace the reported one."""


class BottleneckKind(StrEnum):
    """The name of a rule."""

    SLO_BELOW_COMPUTE = "SloBelowCompute"
    OUT_OF_MEMORY = "OutOfMemory"
    MEMORY_PRESSURE = "MemoryPressure"
    SERIALISED_ENSEMBLE = "SerialisedEnsemble"
    STARVED_STAGE = "StarvedStage"
    FULL_ENGINE = "FullEngine"
    PREFILL_BOUND = "PrefillBound"
    DECODE_BOUND = "DecodeBound"
    SATURATED_GPU = "SaturatedGpu"
    COLLAPSED_BATCHES = "CollapsedBatches"
    WINDOW_TOO_LONG = "WindowTooLong"
    SLOW_AROUND_ENGINE = "SlowAroundEngine"
    LOW_CACHE_HIT_RATE = "LowCacheHitRate"
    IDLE_GPU = "IdleGpu"


Key = tuple[BottleneckKind, str]
"""What identifies a bottleneck while its numbers change: its kind and its stage."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A stage that delays requests. `stage`: the resource's name of its model, which is a step's of an ensemble.

    `evidence` has the numbers and their thresholds in words; `advice` what to do, and whether Argosy does it by itself.
    `share`: thousandths of a request's time that pass there, if known.
    """

    stage: str
    kind: BottleneckKind
    evidence: str
    advice: str
    share: int | None = None

    @property
    def key(self) -> Key:
        """What stays the same while its numbers change."""
        return self.kind, self.stage


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison of a number with a threshold. If it need not be `is_measured`, an unknown number passes."""

    measure: Measure
    threshold: float
    above: bool
    is_measured: bool = True

    @property
    def where_measured(self) -> "Test":
        """Return the same test, which an unknown number passes."""
        return replace(self, is_measured=False)

    def holds(self, value: float | None, met: bool) -> bool:
        """Return whether a value passes; a little less is enough if the rule was `met` before."""
        if value is None:
            return not self.is_measured
        slack = self.threshold * SLACK if met else 0.0
        return value > self.threshold - slack if self.above else value < self.threshold + slack

    @property
    def bound(self) -> str:
        """The threshold in words: `over 50 %`."""
        return f"{'over' if self.above else 'under'} {self.measure.written(self.threshold)}"


@dataclass(frozen=True, slots=True)
class BottleneckRule:
    """A rule: it applies to a stage that passes all its tests. `advice` may contain {model}, {instances}, {window} and
    {replicas}; `lever`: the setting that Argosy changes by itself, if it may.
    """

    kind: BottleneckKind
    tests: tuple[Test, ...]
    advice: str
    lever: Lever | None = None


def over(measure: Measure, threshold: float) -> Test:
    """Return the test that a number is above a threshold."""
    return Test(measure, threshold, above=True)


def under(measure: Measure, threshold: float) -> Test:
    """Return the test that a number is below a threshold."""
    return Test(measure, threshold, above=False)


RULES = (
    BottleneckRule(
        BottleneckKind.SLO_BELOW_COMPUTE,
        (over(m.COMPUTE_AGAINST_BUDGET, 1.0),),
        "more replicas do not help: raise slo.latency, lower maxBatchSize, or make {model} faster, by an engine or "
        "another GPU",
    ),
    BottleneckRule(
        BottleneckKind.OUT_OF_MEMORY,
        (over(m.OUT_OF_MEMORY, 0.0),),
        "smaller batches, then fewer instances (now {instances}); or declare more footprint.gpuMemory",
        Lever.BATCH,
    ),
    BottleneckRule(
        BottleneckKind.MEMORY_PRESSURE,
        (over(m.KV_CACHE, 0.9), over(m.ENGINE_WAITING, 0.0)),
        "more replicas (now {replicas}), a KV cache of a lower precision, or shorter contexts",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.MEMORY_PRESSURE,
        (over(m.PREEMPTED, 0.05),),
        "requests that lose their KV cache are computed again: more memory (footprint.gpuMemory), fewer sequences at "
        "once, shorter contexts, or more replicas (now {replicas})",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.FULL_ENGINE,
        (
            over(m.ENGINE_QUEUE_SHARE, 0.5),
            over(m.ENGINE_QUEUE, m.ENGINE_WORTH_S),
            over(m.ENGINE_WAITING, 0.0),
            under(m.KV_CACHE, 0.9).where_measured,
        ),
        "the engine has memory left and runs no more requests at once: raise its limit of sequences, or take more "
        "replicas of {model} (now {replicas})",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.PREFILL_BOUND,
        (over(m.FIRST_TOKEN_OVER, 1.0), over(m.PROMPT_SHARE, 0.5)),
        "shorter prompts, or prompts that begin alike with the prefix cache on; more GPUs for a request "
        "(parallelism.tensor); or more replicas of {model} (now {replicas}), so that fewer prompts wait for each other",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.DECODE_BOUND,
        (over(m.BETWEEN_TOKENS_OVER, 1.0), over(m.ENGINE_RUNNING, 0.0)),
        "fewer sequences at once, which more replicas of {model} (now {replicas}) bring; weights of a lower precision, "
        "speculative decoding, or more GPUs for a request (parallelism.tensor)",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.SERIALISED_ENSEMBLE,
        (over(m.WAITING_STAGES, 1.5), over(m.STARVING, 0.3), over(m.WAIT, m.WORTH_S), under(m.GPU, 0.9).where_measured),
        "one request's steps cannot overlap another's: more instances of each cheap step, {model} first",
        Lever.INSTANCES,
    ),
    BottleneckRule(
        BottleneckKind.STARVED_STAGE,
        (
            over(m.STARVING, 0.5),
            over(m.WAIT, m.WORTH_S),
            over(m.STAGE_SHARE, 0.1).where_measured,
            over(m.BUSY, 0.7).where_measured,
            under(m.GPU, 0.9).where_measured,
        ),
        "more instances of {model} (now {instances} on each device)",
        Lever.INSTANCES,
    ),
    BottleneckRule(
        BottleneckKind.SATURATED_GPU,
        (over(m.GPU, 0.9), over(m.STARVING, 0.2), over(m.WAIT, m.WORTH_S)),
        "more replicas of {model} (now {replicas}), or larger batches",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.COLLAPSED_BATCHES,
        (under(m.BATCH, 1.5), over(m.LARGEST_BATCH, 1.5), over(m.BUSY, 0.7)),
        "a longer window, batching.maxQueueDelayMicroseconds (now {window}), within the latency budget",
        Lever.WINDOW,
    ),
    BottleneckRule(
        BottleneckKind.WINDOW_TOO_LONG,
        (over(m.OVER_BUDGET, 1.0), under(m.BATCH_FILL, 0.5), over(m.WINDOW_SHARE, 0.1), under(m.STARVING, 0.3)),
        "a shorter window, batching.maxQueueDelayMicroseconds (now {window}): batches do not fill by waiting",
        Lever.WINDOW,
    ),
    BottleneckRule(
        BottleneckKind.SLOW_AROUND_ENGINE,
        (under(m.ENGINE_SHARE, 0.5), under(m.ENGINE_STARVING, 0.2), over(m.STAGE_SHARE, 0.25)),
        "the engine's own figures are good and do not tell: more instances of {model}, a faster one, or larger batches",
        Lever.INSTANCES,
    ),
    BottleneckRule(
        BottleneckKind.SATURATED_GPU,
        (over(m.GPU, 0.9), over(m.ARRIVALS, 0.0)),
        "larger batches, or more replicas of {model} (now {replicas}): whatever is placed on the same GPU will wait",
        Lever.REPLICAS,
    ),
    BottleneckRule(
        BottleneckKind.MEMORY_PRESSURE,
        (over(m.GPU_MEMORY, 0.9),),
        "leave 20 to 30 % free for batches and peaks: declare footprint.gpuMemory as measured, or raise the pool's "
        "memoryHeadroom",
    ),
    BottleneckRule(
        BottleneckKind.LOW_CACHE_HIT_RATE,
        (under(m.CACHE_HITS, 0.7), over(m.ARRIVALS, 1.0)),
        "a larger response cache, the pool's spec.cache; or none for {model}, if its requests do not repeat",
    ),
    BottleneckRule(
        BottleneckKind.IDLE_GPU,
        (under(m.GPU, 0.7), under(m.GPU_WITH_ONE_LESS, 0.7), under(m.STARVING, 0.2), over(m.ARRIVALS, 0.0)),
        "fewer replicas of {model} (now {replicas}) would do",
        Lever.REPLICAS,
    ),
)


def findings(subject: Subject, met: Key | None = None) -> tuple[Bottleneck, ...]:
    """Return the bottlenecks of all rules that hold, the gravest first; of each rule the stage with the longest time.

    `met`: the key of the reported bottleneck, for which a tenth less is enough.
    """
    return tuple(worst for rule in RULES if (worst := _worst(rule, subject, met)) is not None)


def _worst(rule: BottleneckRule, subject: Subject, met: Key | None) -> Bottleneck | None:
    def lost(stage: PathStage) -> float:
        """Return the time there; that of the reported stage counts more, so that two stages do not alternate."""
        return (m.stage_time(stage) or 0.0) * (STAYS if met == (rule.kind, stage.name) else 1.0)

    stage = max(_stages_met(rule, subject, met), key=lost, default=None)
    return None if stage is None else _bottleneck(rule, subject, stage)


def _stages_met(rule: BottleneckRule, subject: Subject, met: Key | None) -> Iterator[PathStage]:
    for stage in subject.stages:
        before = met == (rule.kind, stage.name)
        if all(test.holds(test.measure.of(subject, stage), before) for test in rule.tests):
            yield stage


def _bottleneck(rule: BottleneckRule, subject: Subject, stage: PathStage) -> Bottleneck:
    values = [(test, test.measure.of(subject, stage)) for test in rule.tests]
    evidence = "; ".join(
        f"{test.measure.sentence(value, subject, stage)} ({test.bound})" for test, value in values if value is not None
    )
    share = m.stage_share(subject, stage)
    thousandths = None if share is None else round(1000 * min(1.0, share))
    return Bottleneck(stage.name, rule.kind, evidence, _advice(rule, stage), thousandths)


def _advice(rule: BottleneckRule, stage: PathStage) -> str:
    window = "none" if stage.window_s is None else m.seconds(stage.window_s)
    text = rule.advice.format(model=stage.name, instances=stage.instances, replicas=stage.replicas, window=window)
    return (
        f"{text}; Argosy does so by itself where its targets are missed, within its bounds"
        if rule.lever in stage.levers
        else text
    )
