"""How the scaling benchmark compares: fronts, who is as good, and when the target is met."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.scaling.baselines import NAMES, grid
from benchmarks.scaling.cases import batch_curve, constant, engine_curve
from benchmarks.scaling.clairvoyant import plans
from benchmarks.scaling.comparing import Point, as_cheap, as_good, best, mean_of, meets, ratio, run, saved, tuned
from benchmarks.scaling.policies import lenient, policies

from argosy.simulation.autoscalers.autoscaler import Fixed
from argosy.simulation.traces import constant as steady
from argosy.simulation.traces import drawn


def point(violations, gpu_hours):
    return Point(violations, gpu_hours, 0, "")


THEIRS = [point(0.2, 4.0), point(0.02, 8.0), point(0.0, 12.0)]


def test_a_front_has_none_that_another_is_at_least_as_good_as():
    assert best([*THEIRS, point(0.02, 9.0), point(0.3, 4.0), point(0.0, 12.0)]) == THEIRS


def test_ours_is_held_beside_who_is_as_good_and_who_is_as_cheap():
    ours = point(0.05, 9.0)
    assert (as_good(THEIRS, ours), as_cheap(THEIRS, ours)) == (THEIRS[1], THEIRS[1])
    assert saved(THEIRS, ours) == pytest.approx(1 - 9 / 8)
    assert ratio(THEIRS, ours) == pytest.approx(0.0501 / 0.0201)
    assert ratio(THEIRS, point(0.0, 20.0)) == 1.0
    assert ratio(THEIRS, point(0.5, 3.9)) is None


def test_a_setting_on_several_draws_is_told_by_its_means():
    assert mean_of([Point(0.1, 4.0, 3, "of the first"), Point(0.3, 6.0, 6, "")]) == Point(0.2, 5.0, 4, "of the first")


def test_tuned_is_the_cheapest_that_holds_the_budget_or_the_least_late():
    assert tuned(THEIRS) == THEIRS[2]
    assert tuned(THEIRS[:2]) == THEIRS[1]
    assert tuned([*THEIRS, point(0.01, 9.0)]).gpu_hours == 9.0


@pytest.mark.parametrize(
    ("ours", "met"),
    [
        (point(0.02, 6.8), True),  # 15 % cheaper, and late no more often
        (point(0.02, 6.9), False),
        (point(0.0201, 6.8), True),
        (point(0.0203, 6.0), False),
        (point(0.01, 8.0), True),  # for no more, half as often
        (point(0.011, 8.0), False),
        (point(0.0, 8.1), False),
    ],
)
def test_the_target_is_cheaper_or_calmer(ours, met):
    assert meets(THEIRS[1], ours) is met


def test_curves_keep_their_shape_and_take_the_rate():
    curve = batch_curve("embed", 10.0)
    assert curve.throughput() == pytest.approx(10.0)
    assert list(curve.seconds) == sorted(curve.seconds)
    trace = steady(5.0, 600)
    trace = type(trace)("t", trace.seconds, trace.arrivals, trace.arrivals * 0 + 500, trace.arrivals * 0 + 40)
    assert engine_curve(trace, 2.0).throughput(500, 40) == pytest.approx(2.0)


def test_every_baseline_has_a_grid_without_two_alike():
    case = constant()[0]
    for name in NAMES:
        settings = [each.settings for each in grid(name, 10, 1, case.throughput)]
        assert len(settings) == len(set(settings)) >= 10


def test_our_grid_has_no_two_alike_and_ends_at_what_a_resource_may_say():
    case = constant()[0]
    found = list(policies(case.policy))
    assert len({words for words, _ in found}) == len(found) == len({str(each) for _, each in found})
    assert all(0 < each.targets.busy_low <= each.targets.busy_high <= 1 for _, each in found)
    assert all(each.targets.latency["p99"] <= case.policy.targets.latency["p99"] for _, each in found)


def test_our_grid_has_no_duplicates_and_no_target_below_the_budget():
    case = constant()[0]
    found = list(lenient(case.policy))
    assert len({words for words, _ in found}) == len(found) == len({str(each) for _, each in found})
    assert all(each.targets.latency["p99"] >= case.policy.targets.latency["p99"] for _, each in found)
    assert all(1 <= each.bounds.max_replicas <= case.policy.bounds.max_replicas for _, each in found)


def test_a_plan_of_who_knows_the_load_has_a_replica_before_it_is_needed():
    """A load that is ten times as much from one second on is in time from that second on."""
    case = constant()[0]
    rates = np.repeat([2.0, 20.0], 300)
    case = replace(case, workload=replace(case.workload, trace=drawn("step", rates, 1)))
    plan = next(each for each in plans(case) if each.settings.startswith("mean of 60 s, 135% of it, up"))
    assert run(replace(case.workload, start=plan.start), plan.autoscaling).violations < 0.01
    late = run(replace(case.workload, start=plan.start), Fixed)
    assert late.violations > 0.5
