"""What a candidate must achieve in shadow and at every step."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.model.rollout.conditions import ConditionText
from argosy.api.values.base import ApiModel, Fault, Flag, Int, Number, Rule
from argosy.api.values.meta import LABEL
from argosy.api.values.quantity import Duration, PositiveDuration, Rate, Share, format_duration, format_rate
from argosy.api.values.tensors import BY_NAME

VARIABLES = ("namespace", "pool", "model", "version", "stableVersion")
"""What `$(name)` may stand for in a query."""
_VARIABLE = re.compile(r"\$\(([^)]*)\)")
ACCEPTABLE, UNACCEPTABLE = 1_000, 10_000
"""Millionths of requests that fail."""
CONFIDENCE = 950
"""Thousandths."""
SERVICE_TIME, TAIL = 1.5, 2.0
"""Times the stable revision's duration of a batch, and its p99 latency."""
TOLERANCE_MS = 1
"""What a process that works seldom takes longer for each execution, since its caches are cold, is far below it."""
TIMEOUT_MS, WARM_UP_MS = 1_800_000, 30_000


class OnInconclusive(StrEnum):
    """What happens at a step's timeout if no verdict was reached."""

    HOLD = "Hold"
    ROLLBACK = "Rollback"
    PROMOTE = "Promote"


class MeasurementName(StrEnum):
    """A measurement that can be a dry run. Lost instances, exhausted memory and failed loads cannot."""

    ERROR_RATE = "errorRate"
    UNANSWERED = "unanswered"
    SERVICE_TIME = "serviceTime"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    DIFFERENT_ANSWERS = "differentAnswers"
    TOP1_AGREEMENT = "top1Agreement"


def _rates_in_order(rates: "ErrorRates") -> Iterator[Fault]:
    if not rates.acceptable:
        yield Fault("must be more than 0%; no number of requests proves that none ever fails", ("acceptable",))
    elif rates.unacceptable <= rates.acceptable:
        yield Fault(
            f"must be more than acceptable ({format_rate(rates.acceptable)}); found {format_rate(rates.unacceptable)}",
            ("unacceptable",),
        )


class ErrorRates(ApiModel):
    """The two rates between which a sequential test decides. The closer they are, the more requests it needs."""

    acceptable: Rate = Field(
        default=ACCEPTABLE,
        description='A candidate that fails this share of its requests, or less, passes, as "0.1%". Default: "0.1%".',
        json_schema_extra={"default": "0.1%"},
    )
    unacceptable: Rate = Field(
        default=UNACCEPTABLE,
        description='A candidate that fails this share of its requests, or more, is rolled back, as "1%". Default: '
        '"1%".',
        json_schema_extra={"default": "1%"},
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("acceptable", "unacceptable"), _rates_in_order),)


_RATIO = "The largest ratio of {of} to that of the stable revision, such as {example}. Default: {default}."
_TAILS = ("p50", "p95", "p99")
_LIMITS = ("service_time", *_TAILS)


def _some_limit(latency: "LatencyRatios") -> Iterator[Fault]:
    if all(getattr(latency, name) is None for name in _LIMITS):
        yield Fault("set one or more of serviceTime, p50, p95 and p99, such as serviceTime: 1.5")


def _decidable(latency: "LatencyRatios") -> Iterator[Fault]:
    """Yield an error for each limit that is not above the stable revision's own duration, which no test decides."""
    if latency.tolerance:
        return
    for name in _LIMITS:
        ratio = getattr(latency, name)
        if ratio is not None and ratio <= 1:
            field = "serviceTime" if name == "service_time" else name
            yield Fault(f"must be more than 1 where tolerance is 0s, such as 1.1; found {ratio:g}", (field,))


class LatencyRatios(ApiModel):
    """The largest ratios of the candidate's durations to those of the stable revision."""

    service_time: Number | None = Field(
        default=None,
        gt=0,
        description=_RATIO.format(of="the duration of a batch of as many rows", example="1.5", default="no limit"),
    )
    p50: Number | None = Field(
        default=None, gt=0, description=_RATIO.format(of="its median latency", example="1.5", default="no limit")
    )
    p95: Number | None = Field(
        default=None, gt=0, description=_RATIO.format(of="its p95 latency", example="2", default="no limit")
    )
    p99: Number | None = Field(
        default=None, gt=0, description=_RATIO.format(of="its p99 latency", example="2", default="no limit")
    )
    tolerance: Duration = Field(
        default=TOLERANCE_MS,
        description="A duration that is longer by no more than this passes, whatever the ratio. Default: 1ms.",
        json_schema_extra={"default": "1ms"},
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            _LIMITS,
            _some_limit,
            cel="has(self.serviceTime) || has(self.p50) || has(self.p95) || has(self.p99)",
            says="set serviceTime or one or more percentiles, such as p99",
        ),
        Rule((*_LIMITS, "tolerance"), _decidable),
    )


def unknown_variables(query: str, variables: tuple[str, ...]) -> Iterator[Fault]:
    """Yield an error of the field `query` for each $(NAME) in it that is none of the `variables`."""
    for name in _VARIABLE.findall(query):
        if name not in variables:
            names = ", ".join(f"$({variable})" for variable in variables)
            yield Fault(f"$({name}) stands for nothing; known: {names}", ("query",))


def _some_condition(query: "AnalysisQuery") -> Iterator[Fault]:
    if query.success_condition is None and query.failure_condition is None:
        yield Fault("set successCondition, failureCondition or both, such as successCondition: result < 0.01")


class AnalysisQuery(ApiModel):
    """A query of the pool's Prometheus, whose single value is judged."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="Its name in the status."
    )
    query: str = Field(
        min_length=1,
        max_length=4096,
        description="A PromQL expression with a single value, in which $(namespace), $(pool), $(model), $(version) and "
        "$(stableVersion) are replaced by those of the rollout; $(version) is the candidate's.",
    )
    success_condition: ConditionText | None = Field(
        default=None,
        description="When the candidate passes, such as result < 0.01; several comparisons are joined by && or ||. "
        "Default: when failureCondition is false.",
    )
    failure_condition: ConditionText | None = Field(
        default=None,
        description="When the candidate is rolled back, such as result >= 0.05. If neither condition is true, the "
        "result is inconclusive. Default: when successCondition is false.",
    )
    dry_run: Flag = Field(
        default=False, description="Whether its result is only reported, and decides nothing. Default: false."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("success_condition", "failure_condition"),
            _some_condition,
            cel="has(self.successCondition) || has(self.failureCondition)",
            says="set successCondition, failureCondition or both",
        ),
        Rule(("query",), lambda query: unknown_variables(query.query, VARIABLES)),
    )


Queries = Annotated[
    tuple[AnalysisQuery, ...],
    Field(max_length=16, json_schema_extra=BY_NAME),
]


def named_once(entries: Sequence["AnalysisQuery | AnalysisTemplate"], field: str) -> Iterator[Fault]:
    """Yield an error for each entry of a list, `field`, whose name an earlier one has."""
    names = [entry.name for entry in entries]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Fault(
                f"{name!r} is already {field}[{names.index(name)}]; give it another name", (field, index, "name")
            )


class AnalysisTemplate(ApiModel):
    """Queries that the rollouts of a pool share, by name."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="Its name, for spec.rollout.analysis.templateRef."
    )
    queries: Queries = Field(min_length=1, description="Its queries.")

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("queries",), lambda template: named_once(template.queries, "queries")),)


class TemplateReference(ApiModel):
    """An entry of the pool's spec.analysisTemplates."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="The template's name."
    )


def _measured_and_once(analysis: "Analysis") -> Iterator[Fault]:
    """Yield an error for each dry run of a duration without a limit, and of a measurement that is listed before."""
    limits = {"serviceTime": analysis.latency.service_time} | {name: getattr(analysis.latency, name) for name in _TAILS}
    for index, name in enumerate(analysis.dry_run):
        if name in analysis.dry_run[:index]:
            yield Fault(
                f"{name} is already dryRun[{analysis.dry_run.index(name)}]; keep one of them", ("dryRun", index)
            )
        elif limits.get(name, 0) is None:
            yield Fault(f"{name} is not measured; set latency.{name} or leave this out", ("dryRun", index))


def _measured_in_time(analysis: "Analysis") -> Iterator[Fault]:
    if analysis.warm_up < analysis.timeout:
        return
    warm_up, timeout = format_duration(analysis.warm_up), format_duration(analysis.timeout)
    if analysis.warm_up == WARM_UP_MS:
        yield Fault(
            f"is {timeout}, and nothing is measured in the first {warm_up} (warmUp); set a longer timeout, or a "
            "shorter warmUp",
            ("timeout",),
        )
    else:
        yield Fault(
            f"is {warm_up}, and nothing is measured in it; it must be shorter than timeout ({timeout})", ("warmUp",)
        )


def _some_confidence(analysis: "Analysis") -> Iterator[Fault]:
    if not 500 < analysis.confidence < 1000:
        yield Fault('must be more than "50%" and less than "100%", such as "95%"', ("confidence",))


class Analysis(ApiModel):
    """What the candidate must achieve in shadow and at every step; otherwise it is rolled back."""

    error_rate: ErrorRates = Field(
        default_factory=ErrorRates,
        description='The shares of its requests that may fail. Default: {acceptable: "0.1%", unacceptable: "1%"}.',
    )
    latency: LatencyRatios = Field(
        default_factory=lambda: LatencyRatios(service_time=SERVICE_TIME, p99=TAIL),
        description="The largest ratios of its durations to those of the stable revision. Default: {serviceTime: 1.5, "
        "p99: 2}.",
    )
    confidence: Share = Field(
        default=CONFIDENCE,
        description='The probability with which a test decides correctly, as "95%"; a higher one needs more requests. '
        'Default: "95%".',
        json_schema_extra={"default": "95%"},
    )
    min_requests: Int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="Requests that it must have answered at each step. One that passes waits for them after timeout, "
        "too, unless onInconclusive is Promote. Default: as many as the tests need.",
    )
    timeout: PositiveDuration = Field(
        default=TIMEOUT_MS,
        description="The longest duration of a step, and of mirroring, without a verdict, such as 30m. Then "
        "onInconclusive applies. Default: 30m.",
        json_schema_extra={"default": "30m"},
    )
    on_inconclusive: OnInconclusive = Field(
        default=OnInconclusive.HOLD,
        description="What happens at the timeout: Hold stays at the step until there is a verdict or the candidate is "
        "promoted by hand, Rollback goes back, Promote goes on. Default: Hold.",
    )
    warm_up: Duration = Field(
        default=WARM_UP_MS,
        description="How long after a load measurements are left out, such as 30s. Default: 30s.",
        json_schema_extra={"default": "30s"},
    )
    dry_run: tuple[MeasurementName, ...] = Field(
        default=(),
        max_length=len(MeasurementName),
        description="Measurements that are only reported, and decide nothing, such as [serviceTime, p99]. Lost "
        "instances, memory that ran out and failed loads always decide; queries have a dryRun of their own. Default: "
        "none.",
    )
    queries: Queries = Field(
        default=(),
        description="Further queries of the Prometheus in the pool's spec.monitoring. Default: none.",
    )
    template_ref: TemplateReference | None = Field(
        default=None, description="Queries of the pool's spec.analysisTemplates, in addition. Default: none."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("queries",), lambda analysis: named_once(analysis.queries, "queries")),
        Rule(("confidence",), _some_confidence),
        Rule(("warm_up", "timeout"), _measured_in_time),
        Rule(("dry_run", "latency"), _measured_and_once),
    )
