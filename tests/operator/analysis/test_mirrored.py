"""Verdicts on a candidate that has no traffic yet: by the requests that are mirrored to it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.operator.analysis.versions import durations, total

from argosy.analysis.evidence import Evidence
from argosy.analysis.pool_analysis import AnalysisSubject, MemberAnalysis, analyzed, begun
from argosy.analysis.shadow.mirrored import DIFFERENT_ANSWERS, TOP1, answers, as_requests
from argosy.analysis.verdicts import NO_EVIDENCE, verdict
from argosy.api.model.rollout.analysis import Analysis, LatencyRatios
from argosy.api.model.rollout.shadow import OutputTolerance, Shadow
from argosy.autoscaling.metrics.shadow_counts import ShadowExample, ShadowOutput, ShadowSignals
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import Phase, Revision, RolloutState
from argosy.rollout.statuses import from_status, to_status
from argosy.rollout.verdict import Measurement, Outcome, Verdict

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATENCY = LatencyRatios(p99=2)
ANALYSIS = Analysis(latency=LATENCY)
SHADOW = Shadow.model_validate({"traffic": "10%"})
SHADOWING = RolloutState(
    Phase.SHADOWING, NOW, stable=Revision("one", 1), candidate=Revision("two", 2), number=3, observed_at=NOW
)
BEGUN = Evidence().follow(SHADOWING)
EXAMPLE = ShadowExample("order-17", "Value", 0.5)


def mirrored(
    equal: float = 0,
    different: float = 0,
    failures: dict[str, float] | None = None,
    slower: float = 1.0,
    output: ShadowOutput | None = None,
    **obstacles: float,
) -> VersionSignals:
    """Return the signals of several readings, together so many requests; each lasted 10 ms, and `slower` there."""
    readings, number = 10, max(1, round((equal + different) / 10))
    failed = sum((failures or {}).values())
    parts = [
        VersionSignals(
            1.0,
            shadow=ShadowSignals(
                stable=durations(np.full(number, 0.009)),
                candidate=durations(np.full(number, 0.009 * slower)),
            ),
        )
        for _ in range(readings)
    ]
    counts = ShadowSignals(
        {"equal": equal, "different": different, "failed": failed, "uncompared": sum(obstacles.values())},
        failures or {},
        obstacles,
        {"Y": output or ShadowOutput(different, examples=(EXAMPLE,) if different else ())},
    )
    return total(*parts, VersionSignals(shadow=counts))


def judged(candidate: VersionSignals, shadow: Shadow = SHADOW) -> Verdict:
    return verdict(ANALYSIS, BEGUN.add({2: candidate}), shadow=shadow)


def measurement(result: Verdict, name: str) -> Measurement:
    return next(one for one in result.measurements if one.name == name)


def test_a_candidate_that_answers_alike_passes_without_any_traffic() -> None:
    result = judged(mirrored(equal=1000))
    assert result.outcome is Outcome.SUCCESSFUL, result.message
    assert measurement(result, "errorRate").samples == 1000
    assert measurement(result, "p99").outcome is Outcome.SUCCESSFUL
    assert result.shadow is not None
    assert (result.shadow.equal, result.shadow.stable_latency is not None) == (1000, True)


def test_answers_that_differ_convict_and_name_the_worst_request() -> None:
    result = judged(mirrored(equal=95, different=5))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "DifferentAnswers")
    assert result.message == "differentAnswers: 5 of 100 answers differ, most in Y of request order-17"
    assert result.shadow is not None
    assert result.shadow.outputs[0].examples[0].request_id == "order-17"


def test_few_answers_prove_nothing() -> None:
    result = judged(mirrored(equal=50))
    assert result.outcome is Outcome.INCONCLUSIVE
    assert measurement(result, DIFFERENT_ANSWERS).message == "0 of 50 answers differ; 326 are needed"


def test_without_mirrored_requests_there_is_no_evidence() -> None:
    result = judged(VersionSignals(1.0))
    assert (result.outcome, result.reason) == (Outcome.INCONCLUSIVE, NO_EVIDENCE)


@pytest.mark.parametrize(
    ("limit", "different", "outcome"),
    [
        ("5%", 10, Outcome.INCONCLUSIVE),
        ("5%", 2, Outcome.SUCCESSFUL),
        ("0%", 1, Outcome.FAILED),
        ("0%", 0, Outcome.SUCCESSFUL),
    ],
)
def test_the_share_that_may_differ_is_the_specs(limit: str, different: int, outcome: Outcome) -> None:
    shadow = Shadow.model_validate({"traffic": "10%", "maxDifferent": limit})
    result = judged(mirrored(equal=500 - different, different=different), shadow)
    assert measurement(result, DIFFERENT_ANSWERS).outcome is outcome, measurement(result, DIFFERENT_ANSWERS)


def test_failures_of_the_candidate_are_its_errors_whatever_the_reason() -> None:
    evidence = BEGUN
    for reason in ("INVALID", "TIMEOUT", "ERROR", "INVALID", "ERROR"):
        evidence = evidence.add({2: mirrored(equal=19, failures={reason: 1})})
    result = verdict(ANALYSIS, evidence, shadow=SHADOW)
    assert (result.outcome, result.reason) == (Outcome.FAILED, "ErrorRate")
    assert measurement(result, "errorRate").message == "5 of 100 requests failed"
    unloaded = judged(mirrored(equal=1000, failures={"OTHER": 10}))
    assert measurement(unloaded, "errorRate").message == "0 of 1000 requests failed"


def test_mirrored_requests_that_fail_as_one_batch_are_one_failure() -> None:
    evidence = BEGUN
    for failures in (*[{}] * 20, {"ERROR": 8.0}):
        evidence = evidence.add({2: mirrored(equal=20, failures=failures)})
    result = verdict(ANALYSIS, evidence, shadow=SHADOW)
    assert measurement(result, "errorRate").outcome is Outcome.INCONCLUSIVE, measurement(result, "errorRate")
    assert "8 of 428 requests failed (" in measurement(result, "errorRate").message


def test_memory_that_runs_out_convicts_at_once() -> None:
    result = judged(mirrored(equal=10, failures={"OUT_OF_MEMORY": 1}))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "OutOfMemory")


def test_latencies_are_compared_on_the_same_requests() -> None:
    result = judged(mirrored(equal=2000, slower=5.0))
    assert measurement(result, "p99").outcome is Outcome.FAILED, measurement(result, "p99")
    assert result.reason == "P99"


def test_durations_of_mirrored_requests_that_wait_for_other_models_decide_nothing() -> None:
    slow = mirrored(equal=2000, slower=5.0)
    assert slow.shadow is not None
    result = judged(replace(slow, shadow=replace(slow.shadow, calls=3.0)))
    p99 = measurement(result, "p99")
    assert (p99.outcome, result.outcome) == (None, Outcome.SUCCESSFUL)
    assert "not judged: mirrored requests call other models" in p99.message


def test_where_every_answer_is_drawn_at_random_errors_decide() -> None:
    result = judged(mirrored(SAMPLED=1000))
    sampled = measurement(result, DIFFERENT_ANSWERS)
    assert (sampled.outcome, sampled.message) == (None, "none was compared: 1000 are drawn at random")
    assert measurement(result, "errorRate").samples == 1000


def test_rows_are_judged_over_all_requests() -> None:
    tolerance = OutputTolerance.model_validate({"output": "Y", "top1Agreement": "98%"})
    shadow = SHADOW.model_copy(update={"tolerances": (tolerance,)})
    good = judged(mirrored(equal=1000, output=ShadowOutput(0, 10_000, 9_990)), shadow)
    assert measurement(good, TOP1).outcome is Outcome.SUCCESSFUL
    bad = judged(mirrored(equal=1000, output=ShadowOutput(0, 10_000, 9_700)), shadow)
    assert (bad.outcome, bad.reason) == (Outcome.FAILED, "Top1Agreement")
    assert "9700 of 10000 rows of Y have the same largest element" in bad.message
    unknown = judged(mirrored(equal=1000, output=ShadowOutput()), shadow)
    assert measurement(unknown, TOP1).outcome is Outcome.INCONCLUSIVE


def test_the_comparison_stays_in_the_status_during_later_steps_and_ends_with_the_rollout() -> None:
    evidence = BEGUN.add({2: mirrored(equal=10)})
    stepping = replace(SHADOWING, phase=Phase.STEPPING)
    later = evidence.follow(stepping).add({2: VersionSignals(1.0, answered=5, shadow=ShadowSignals({"equal": 0.0}))})
    result = verdict(ANALYSIS, later)
    assert result.shadow is not None
    assert result.shadow.equal == 10
    assert measurement(result, "errorRate").samples == 5
    assert DIFFERENT_ANSWERS not in {one.name for one in result.measurements}
    other = replace(SHADOWING, number=4, candidate=Revision("three", 3))
    assert later.follow(other).shadow is None


def test_a_restarted_operator_goes_on_from_the_status() -> None:
    subject = AnalysisSubject("m", SHADOWING, ANALYSIS, shadow=SHADOW)
    signals = PoolSignals(versions={"m": {2: mirrored(equal=300, different=1)}})
    before = analyzed({"m": subject}, signals, {}, NOW)["m"]
    state = from_status(to_status(replace(SHADOWING, verdict=before.verdict)))
    assert state is not None
    assert state.verdict == before.verdict
    restarted: MemberAnalysis = begun(state)
    again = analyzed({"m": replace(subject, state=state)}, PoolSignals(), {"m": restarted}, NOW + timedelta(minutes=1))
    result = again["m"].verdict
    assert result is not None
    assert measurement(result, DIFFERENT_ANSWERS).message.startswith("1 of 301 answers differ")
    assert result.shadow is not None
    assert result.shadow.outputs[0].examples[0].request_id == "order-17"
    assert again["m"].requests == 301


def test_signals_without_a_shadow_are_as_they_are() -> None:
    signals = VersionSignals(1.0, answered=5, errors=1)
    assert as_requests(signals) is signals


def test_what_is_never_copied_says_why() -> None:
    signals = ShadowSignals(obstacles={"BUSY": 40.0, "IN_FLIGHT": 2.0, "LATER": 1.0})
    (different,) = answers(SHADOW, signals, 0.95)
    assert different.message == (
        "none was compared: 40 are skipped, requests waited for the stable version all the time; "
        "2 are skipped, as many copies as may be are under way; 1 are LATER"
    )
