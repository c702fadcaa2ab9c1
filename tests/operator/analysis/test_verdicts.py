"""Verdicts: what measurements say together, failures that need no statistics, queries, restarts."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.analysis.versions import answered, total

from argosy.analysis.evidence import Evidence, restored
from argosy.analysis.pool_analysis import REPORT_AGAIN, STICKY_KEY, AnalysisSubject, MemberAnalysis, analyzed, begun
from argosy.analysis.queries import QueryResults, missing_template, queries_of
from argosy.analysis.verdicts import NO_EVIDENCE, verdict
from argosy.api.model.rollout.analysis import Analysis, AnalysisTemplate
from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import Phase, Revision, RolloutState
from argosy.rollout.statuses import from_status, to_status
from argosy.rollout.verdict import Outcome, Verdict

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANALYSIS = Analysis()
STEPPING = RolloutState(
    Phase.STEPPING, NOW, stable=Revision("one", 1), candidate=Revision("two", 2), number=3, step=1, observed_at=NOW
)
BEGUN = Evidence().follow(STEPPING)


def judged(candidate: VersionSignals, stable: VersionSignals | None = None, analysis: Analysis = ANALYSIS) -> Verdict:
    return verdict(analysis, BEGUN.add({1: stable or answered(10_000), 2: candidate}))


def test_errors_convict_clear_or_prove_nothing():
    convicted = judged(answered(100, 3))
    assert (convicted.outcome, convicted.reason) == (Outcome.FAILED, "ErrorRate")
    assert convicted.message == "errorRate: 3 of 100 requests failed"
    rate = convicted.measurements[0]
    assert (rate.value, rate.samples, rate.outcome) == (0.03, 100, Outcome.FAILED)
    assert judged(answered(400)).outcome is Outcome.SUCCESSFUL
    early = judged(answered(100))
    assert early.outcome is Outcome.INCONCLUSIVE
    assert "326 without a failure are needed" in early.message


def test_declared_rates_are_those_that_are_tested():
    close = Analysis.model_validate({"errorRate": {"acceptable": "0.8%", "unacceptable": "1%"}})
    assert judged(answered(3000, 24), analysis=close).measurements[0].limit == (
        "acceptable 0.8000%, unacceptable 1.0000%"
    )
    highest = Analysis.model_validate({"errorRate": {"acceptable": "99.9999%", "unacceptable": "100%"}})
    assert judged(answered(10, 10), analysis=highest).outcome is Outcome.INCONCLUSIVE


def test_a_batch_that_fails_as_one_is_one_failure():
    readings_ = [answered(20).as_reading() for _ in range(20)]
    one_batch = judged(total(*readings_, answered(20, 8).as_reading()))
    assert one_batch.outcome is Outcome.INCONCLUSIVE
    assert "8 of 420 requests failed (" in one_batch.message
    apart = [answered(20, 1).as_reading() for _ in range(8)]
    assert judged(total(*readings_, *apart)).outcome is Outcome.FAILED
    assert judged(total(*readings_, *[answered(20, 20).as_reading()] * 3)).outcome is Outcome.FAILED


def test_failures_of_clients_and_of_load_are_not_the_candidates():
    others = dict.fromkeys((Failure.CANCELED, Failure.INVALID, Failure.REJECTED, Failure.TIMED_OUT, Failure.OTHER), 50)
    assert judged(VersionSignals(1.0, 400, failures=others)).outcome is Outcome.SUCCESSFUL
    assert judged(VersionSignals(1.0, 400, failures={Failure.BACKEND: 8})).outcome is Outcome.FAILED


def test_a_candidate_that_fails_no_more_than_the_stable_revision_is_not_convicted():
    verdict_ = judged(answered(100, 3), answered(2000, 50))
    assert verdict_.outcome is Outcome.INCONCLUSIVE
    assert "the stable revision fails as many requests: 50 of 2000" in verdict_.message
    assert judged(answered(100, 30), answered(2000, 50)).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (VersionSignals(instances_lost=1), "InstancesLost"),
        (VersionSignals(failures={Failure.OUT_OF_MEMORY: 1}), "OutOfMemory"),
        (VersionSignals(failed_loads=1), "FailedLoads"),
    ],
)
def test_one_failure_is_enough_unless_the_stable_revision_has_it_too(failure, reason):
    convicted = judged(failure)
    assert (convicted.outcome, convicted.reason) == (Outcome.FAILED, reason)
    assert judged(failure, failure).outcome is not Outcome.FAILED


def test_without_requests_there_is_no_evidence():
    silent = verdict(ANALYSIS, BEGUN, error="1 of 2 servers cannot be measured")
    assert (silent.outcome, silent.reason) == (Outcome.INCONCLUSIVE, NO_EVIDENCE)
    assert "cannot be measured" in silent.message


QUERIES = Analysis.model_validate(
    {
        "queries": [
            {"name": "hits", "query": "x", "successCondition": "result > 0.9"},
            {"name": "slow", "query": "y", "failureCondition": "result > 3", "successCondition": "result < 1"},
            {"name": "trial", "query": "z", "failureCondition": "result > 0", "dryRun": True},
        ]
    }
)
CLEAR = BEGUN.add({1: answered(10_000), 2: answered(400)})


@pytest.mark.parametrize(
    ("hits", "slow", "outcome", "reason"),
    [
        (0.95, 0.5, Outcome.SUCCESSFUL, ""),
        (0.95, 2, Outcome.INCONCLUSIVE, "Query"),
        (0.95, 4, Outcome.FAILED, "Query"),
        (0.8, 0.5, Outcome.FAILED, "Query"),
        (None, 0.5, Outcome.ERROR, "Query"),
        (None, 4, Outcome.FAILED, "Query"),
    ],
)
def test_queries_are_judged_by_their_conditions(hits, slow, outcome, reason):
    values = {"slow": slow, "trial": 5.0} | ({"hits": hits} if hits is not None else {})
    results = QueryResults(values, {} if hits is not None else {"hits": "it answers 3 values where one is needed"})
    verdict_ = verdict(QUERIES, CLEAR, QUERIES.queries, results)
    assert (verdict_.outcome, verdict_.reason) == (outcome, reason)
    trial = verdict_.measurements[-1]
    assert (trial.name, trial.outcome, trial.test) == ("trial", Outcome.FAILED, "query, dry run")
    if outcome is Outcome.ERROR:
        assert "it answers 3 values" in verdict_.message


def test_queries_that_are_not_judged_yet_clear_nothing():
    assert verdict(QUERIES, CLEAR, QUERIES.queries, None).outcome is Outcome.INCONCLUSIVE


def test_a_template_adds_its_queries_and_a_missing_one_is_an_error():
    template = AnalysisTemplate.model_validate(
        {"name": "usual", "queries": [{"name": name, "query": "t", "successCondition": "result < 1"} for name in "ab"]}
    )
    own = {"name": "a", "query": "own", "successCondition": "result < 2"}
    analysis = Analysis.model_validate({"queries": [own], "templateRef": {"name": "usual"}})
    assert [(query.name, query.query) for query in queries_of(analysis, [template])] == [("a", "own"), ("b", "t")]
    assert missing_template(analysis, [template]) == ""
    missing = missing_template(analysis, [])
    assert "templateRef 'usual'" in missing
    verdict_ = verdict(analysis, CLEAR, missing=missing)
    assert (verdict_.outcome, verdict_.reason) == (Outcome.ERROR, "TemplateRef")


readings = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 3)).map(lambda counts: answered(counts[0], min(counts))), max_size=8
)
ORDER = [Outcome.SUCCESSFUL, Outcome.INCONCLUSIVE, Outcome.FAILED]


def grown(candidate: list[VersionSignals], stable: list[VersionSignals]) -> Verdict:
    evidence = BEGUN
    for reading in candidate:
        evidence = evidence.add({2: reading})
    for reading in stable:
        evidence = evidence.add({1: reading})
    return verdict(ANALYSIS, evidence)


@given(readings, readings, st.randoms())
def test_the_order_of_readings_does_not_matter(candidate, stable, chance: random.Random):
    shuffled = chance.sample(candidate, len(candidate)), chance.sample(stable, len(stable))
    assert grown(*shuffled) == grown(candidate, stable)


@given(readings, readings, st.integers(1, 5))
def test_more_failures_never_make_a_better_verdict(candidate, stable, more):
    worse = [*candidate, answered(more, more)]
    assert ORDER.index(grown(worse, stable).outcome) >= ORDER.index(grown(candidate, stable).outcome)


@given(readings, readings)
def test_an_operator_that_starts_again_in_the_middle_loses_no_conviction(before, after):
    """Every reading before the restart is in the status; a conviction that was reached stays one."""
    evidence = BEGUN.add({2: total(*before)})
    reached = verdict(ANALYSIS, evidence)
    status = to_status(replace(STEPPING, verdict=reached))
    again = from_status(status)
    assert again is not None
    continued = restored(again).add({2: total(*after)})
    assert continued.counts.requests == total(*before, *after).requests
    assert continued.counts.failed == total(*before, *after).failed
    if reached.outcome is Outcome.FAILED:
        assert begun(again).verdict == reached
        assert verdict(ANALYSIS, restored(again)).outcome is Outcome.INCONCLUSIVE


def test_failures_before_a_restart_convict_nothing_since_they_may_have_come_together():
    """Of a status it is not known that eight failures were those of one batch; further ones convict by themselves."""
    before = BEGUN.add({2: total(*[answered(20).as_reading()] * 20, answered(20, 8).as_reading())})
    state = from_status(to_status(replace(STEPPING, verdict=verdict(ANALYSIS, before))))
    assert state is not None
    again = restored(state)
    for failed, outcome in ((0, Outcome.INCONCLUSIVE), (1, Outcome.FAILED)):
        evidence = again
        for _ in range(8):
            evidence = evidence.add({2: answered(20, failed).as_reading()})
        result = verdict(ANALYSIS, evidence)
        assert (result.outcome, result.measurements[0].samples) == (outcome, 580)
    clear = again.add({2: total(*[answered(200).as_reading()] * 20)})
    assert verdict(ANALYSIS, clear).measurements[0].outcome is Outcome.SUCCESSFUL


@pytest.mark.parametrize("readings_", [1, 2, 4])
def test_failures_of_one_of_few_readings_count_as_one(readings_: int):
    """One batch of 8 failed, and readings are half a minute apart."""
    clear = [answered(200).as_reading()] * (readings_ - 1)
    assert judged(total(*clear, answered(200, 8).as_reading())).outcome is not Outcome.FAILED


def test_an_analysis_begins_without_requests_and_with_earlier_signals():
    evidence = BEGUN.add({1: answered(1000), 2: answered(50, 1)})
    assert evidence.follow(STEPPING) is evidence
    following = evidence.follow(replace(STEPPING, step=2))
    assert (following.counts.requests, following.of_stable.requests) == (0, 0)
    assert following.earlier.requests == 1000
    assert evidence.follow(replace(STEPPING, stable=Revision("new", 4))).earlier.requests == 0


MEMBER = AnalysisSubject("model", STEPPING, ANALYSIS)


def signals(candidate: VersionSignals, **others) -> PoolSignals:
    return PoolSignals(versions={"model": {1: answered(1000), 2: candidate}}, **others)


def read(before: dict[str, MemberAnalysis], candidate: VersionSignals, seconds: float) -> dict[str, MemberAnalysis]:
    return analyzed({"id": MEMBER}, signals(candidate), before, NOW + timedelta(seconds=seconds))


def test_a_verdict_is_reported_at_once_if_it_changes_and_else_seldom():
    one = read({}, answered(10), 0)
    two = read(one, answered(10), 1)
    assert two["id"].verdict is one["id"].verdict
    later = read(two, answered(10), REPORT_AGAIN.total_seconds())
    assert later["id"].requests == 30
    convicted = read(later, answered(10, 10), 11)["id"].verdict
    assert convicted is not None
    assert convicted.outcome is Outcome.FAILED


def test_the_requests_that_a_step_needs_are_reported_at_once():
    member = replace(MEMBER, least=25)
    memory: dict[str, MemberAnalysis] = {}
    for second in range(3):
        memory = analyzed({"id": member}, signals(answered(10)), memory, NOW + timedelta(seconds=second))
    assert memory["id"].requests == 30


def test_queries_are_judged_after_the_warm_up():
    member = replace(MEMBER, analysis=QUERIES, queries=QUERIES.queries)
    values = {("model", f"rollout/{name}"): 4.0 for name in ("hits", "slow", "trial")}
    early = analyzed({"id": member}, signals(answered(10), queries=values), {}, NOW)
    assert early["id"].verdict.outcome is Outcome.INCONCLUSIVE
    warm = analyzed({"id": member}, signals(answered(10), queries=values), early, NOW + timedelta(seconds=30))
    assert (warm["id"].verdict.outcome, warm["id"].verdict.reason) == (Outcome.FAILED, "Query")


def test_queries_are_not_judged_while_the_candidate_loads_and_again_after_the_clock_was_set_back():
    loading = replace(MEMBER, state=replace(STEPPING, phase=Phase.LOADING), analysis=QUERIES, queries=QUERIES.queries)
    read_ = signals(answered(10), queries={("model", f"rollout/{name}"): 4.0 for name in ("hits", "slow", "trial")})
    memory = analyzed({"id": loading}, read_, {}, NOW)
    memory = analyzed({"id": loading}, read_, memory, NOW + timedelta(hours=1))
    assert memory["id"].verdict.outcome is Outcome.INCONCLUSIVE
    stepping = replace(loading, state=STEPPING)
    for hours in (1, 0, 0.01):
        memory = analyzed({"id": stepping}, read_, memory, NOW + timedelta(hours=hours))
    assert memory["id"].verdict.outcome is Outcome.FAILED


def test_a_member_at_rest_has_a_baseline_and_no_verdict():
    at_rest = replace(STEPPING, phase=Phase.STABLE, candidate=None)
    memory = analyzed({"id": replace(MEMBER, state=at_rest)}, signals(answered(5)), {}, NOW)
    assert memory["id"].verdict is None
    assert memory["id"].evidence.of_stable.requests == 1000
    begins = analyzed({"id": MEMBER}, signals(answered(5)), memory, NOW)
    assert begins["id"].evidence.earlier.requests == 1000


def test_the_candidates_share_of_the_traffic_is_measured():
    versions = {1: replace(answered(95), routed=95.0), 2: replace(answered(5), routed=5.0)}
    memory = analyzed({"id": MEMBER}, PoolSignals(versions={"model": versions}), {}, NOW)
    assert memory["id"].traffic == pytest.approx(0.05)
    assert analyzed({"id": MEMBER}, PoolSignals(), {}, NOW)["id"].traffic is None


def sticky(by_weight: float, routed: float) -> Verdict:
    """Return the verdict on a member whose requests stay by a header, of which so many lack it."""
    keyed = replace(MEMBER, sticky=("header x-user",))
    versions = {1: replace(answered(95), routed=routed, by_weight=by_weight), 2: answered(5)}
    result = analyzed({"id": keyed}, PoolSignals(versions={"model": versions}), {}, NOW)["id"].verdict
    assert result is not None
    return result


def test_keys_that_most_requests_lack_are_in_the_verdict_and_decide_nothing():
    says = "180 of 200 requests have no header x-user, and do not stay with one version"
    lacking, rare = sticky(180.0, 200.0), sticky(20.0, 200.0)
    assert lacking.message.endswith(f"; stickyKey: {says}")
    assert (lacking.measurements[-1].name, lacking.measurements[-1].value) == (STICKY_KEY, 0.9)
    assert (rare.measurements[-1].value, STICKY_KEY in rare.message) == (0.1, False)
    assert lacking.outcome is rare.outcome
    assert STICKY_KEY not in {one.name for one in sticky(99.0, 99.0).measurements}


HANGS = total(*[VersionSignals(1.0, failures={Failure.CANCELED: 10.0}).as_reading()] * 10)


@pytest.mark.parametrize(("name", "candidate"), [("errorRate", answered(100, 3)), ("unanswered", HANGS)])
def test_a_dry_run_reports_and_decides_nothing(name: str, candidate: VersionSignals):
    stable = total(*[answered(100).as_reading()] * 10)
    assert judged(candidate, stable).outcome is Outcome.FAILED
    result = judged(candidate, stable, Analysis.model_validate({"dryRun": [name]}))
    (reported,) = [one for one in result.measurements if one.name == name]
    assert reported.outcome is Outcome.FAILED
    assert reported.test.endswith(", dry run")
    assert result.outcome is not Outcome.FAILED
    assert name not in result.message


def test_a_verdict_without_requests_is_inconclusive_though_all_is_a_dry_run():
    reported = ["errorRate", "unanswered", "serviceTime", "p99"]
    analysis = Analysis.model_validate({"dryRun": reported})
    result = verdict(analysis, BEGUN)
    assert (result.outcome, result.reason) == (Outcome.INCONCLUSIVE, NO_EVIDENCE)
    assert verdict(analysis, BEGUN.add({2: answered(1)})).outcome is Outcome.SUCCESSFUL
    lost = BEGUN.add({2: replace(answered(1), instances_lost=1.0)})
    assert verdict(analysis, lost).outcome is Outcome.FAILED, "no dry run of what ends a rollout at once"


def test_a_baseline_that_is_old_begins_again_and_the_last_one_is_still_there():
    at_rest = replace(STEPPING, phase=Phase.STABLE, candidate=None)
    evidence = Evidence().follow(at_rest).add({1: answered(15_000)}).add({1: answered(6_000)})
    assert (evidence.of_stable.requests, evidence.earlier.requests) == (0, 21_000)
    evidence = evidence.add({1: answered(20_001)})
    assert evidence.earlier.requests == 20_001
    assert evidence.add({1: answered(10)}).follow(STEPPING).earlier.requests == 20_011
