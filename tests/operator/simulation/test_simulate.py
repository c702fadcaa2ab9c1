"""Full runs: every request is answered once, GPUs are counted while they are in use, and are shared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operator.simulation.curves import affine

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Ejection
from argosy.simulation import traces
from argosy.simulation.autoscalers.autoscaler import Fixed
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings
from argosy.simulation.autoscalers.kpa import Kpa, KpaSettings
from argosy.simulation.member import Workload
from argosy.simulation.recorder import Recorder, State
from argosy.simulation.servers.served import Served
from argosy.simulation.simulate import Fleet, simulate

CURVE = affine(0.06, 0.035, 8, (1.0, 1.6))
TWO, FLEET = Allocation(2), Fleet()


class Scripted:
    """Replicas and instances by the clock."""

    interval_s, wakes, reason, ejection = 10.0, False, "scripted", NO_EJECTION

    def __init__(self, *steps):
        self.steps = steps

    def decide(self, seen):
        return next(allocation for at, allocation in reversed(self.steps) if at <= seen.now)


def one(trace, autoscaling=Fixed, start=TWO, fleet=FLEET, **workload):
    (outcome,) = simulate([(Workload("m", trace, CURVE, 1.0, start, **workload), autoscaling)], fleet)
    return outcome


def test_two_replicas_for_an_hour_are_two_gpu_hours():
    outcome = one(traces.constant(10, 3600))
    assert outcome.gpu_hours == pytest.approx(2.0)
    assert (outcome.violating, outcome.changes) == (0, ())
    assert len(outcome.latency) == outcome.requests


def test_a_replica_has_its_gpu_from_its_request_until_it_is_drained():
    outcome = one(
        traces.constant(1, 600), lambda: Scripted((0, Allocation(1)), (100, Allocation(2)), (400, Allocation(1)))
    )
    assert outcome.gpu_s == pytest.approx(600 + 10 + 300, abs=1)
    ready = dict(zip(outcome.timeline.at, outcome.timeline.ready, strict=True))
    assert (ready[130.0], ready[140.0], ready[400.0]) == (2, 2, 1)


def test_a_replica_that_is_ejected_is_sent_nothing_while_there_is_another():
    class Ejecting(Scripted):
        interval_s, ejection = 1.0, Ejection(("1",))

    trace = traces.constant(30, 600)
    alone, ejected, both = (
        one(trace, autoscaling, start=Allocation(count))
        for autoscaling, count in (
            (Fixed, 1),
            (lambda: Ejecting((0, TWO)), 2),
            (Fixed, 2),
        )
    )
    assert ejected.violating > 0.9 * alone.violating > 0
    assert both.violating == 0


def test_the_only_replica_gets_all_requests():
    class Ejecting(Scripted):
        interval_s, ejection = 1.0, Ejection(("1",))

    trace = traces.constant(10, 600)
    outcome = one(trace, lambda: Ejecting((0, Allocation(1))), start=Allocation(1))
    assert (len(outcome.latency), outcome.violating) == (len(trace.arrivals), 0)


def test_requests_without_a_replica_wait_and_wake_the_autoscaler():
    trace = traces.Trace("late", 600.0, np.array([300.0, 301.0]))
    outcome = one(trace, lambda: Kpa(KpaSettings(concurrency=4)), Allocation(0))
    assert outcome.changes[0].at == 300.0
    assert outcome.latency[0] == pytest.approx(30.13, abs=0.1)
    assert outcome.violating == 2


def test_too_few_replicas_violate_the_budget_though_the_trace_ends_first():
    outcome = one(traces.constant(100, 300), start=Allocation(1))
    assert len(outcome.latency) == outcome.requests
    assert outcome.violations > 0.9


def test_the_earlier_member_has_the_last_gpu():
    trace = traces.constant(60, 900)
    scaling = lambda: Hpa(HpaSettings(target=0.5))  # noqa: E731
    names = ("first", "second")
    pairs = [(Workload(name, trace, CURVE, 1.0, Allocation(1)), scaling) for name in names]
    first, second = simulate(pairs, Fleet(gpus=5))
    assert first.timeline.desired.max() + second.timeline.desired.max() <= 5
    assert first.violations < second.violations


def test_an_added_instance_helps_a_second_later():
    curve = replace(CURVE, slowdown=(1.0, 1.0))
    slow = Workload("m", traces.constant(30, 300), curve, 1.0, Allocation(1, 1))
    (alone,) = simulate([(slow, Fixed)])
    (helped,) = simulate([(slow, lambda: Scripted((0, Allocation(1, 2))))])
    assert helped.violations < alone.violations / 2
    assert helped.gpu_hours == alone.gpu_hours


def test_the_same_seed_is_the_same_run():
    runs = [one(traces.flash_crowd(5, seconds=1200), lambda: Hpa(HpaSettings())) for _ in range(2)]
    assert np.array_equal(runs[0].latency, runs[1].latency)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    rate=st.floats(0, 60),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=6),
)
def test_no_request_is_lost_or_answered_twice(seed, rate, steps):
    script = [(60 * minute, Allocation(*step)) for minute, step in enumerate([*steps, (1, 1)])]
    outcome = one(traces.constant(rate, 60 * len(script), seed), lambda: Scripted(*script), startup_s=15)
    assert len(outcome.latency) == outcome.requests
    assert (outcome.latency > 0).all()
    most = max(allocation.replicas for _, allocation in script)
    assert outcome.gpu_s <= (most + 4) * 60 * len(script) + 600


def test_what_is_measured_is_what_happened():
    recorder = Recorder(max_batch=8)
    work = Served([1.0, 2.0, 3.0], [1.0, 4.0, 4.0], [4.0, 12.0, 12.0], [4.0, 12.0], [3.0, 8.0], busy_s=11.0)
    recorder.add(0.0, 10.0, np.array([1.0, 2.0, 3.0]), [work], State(2.0, 0, 0, 1, 1, 0))
    recorder.add(10.0, 20.0, np.zeros(0), [], State(-2.0, 0, 0, 1, 1, 0))
    first, both = recorder.signals(10.0, 10.0), recorder.signals(20.0, 20.0)
    assert (first.arrivals, first.completions, first.busy, first.running) == (0.3, 0.1, 0.9, 2)
    assert (first.execution, first.batch, both.execution) == (3.0, 1.0, 5.5)
    assert (both.arrivals, both.latency.mean, both.batch) == (0.15, (3 + 10 + 9) / 3, 1.5)
    assert recorder.concurrency(20.0, 20.0) == pytest.approx((3 + 10 + 9) / 20)
    assert both.busy == pytest.approx(11 / 20)


def test_a_first_token_counts_before_its_request_is_answered():
    recorder = Recorder(0, max_running=4)
    work = Served([1.0], [1.0], [25.0], [25.0], [24.0], prompted=[1.0], first=[3.0], tokens=5.0, between_s=0.5)
    recorder.add(0.0, 10.0, np.array([1.0]), [work], State(0.0, 0, 1, 1, 1, 0))
    signals = recorder.signals(10.0, 10.0)
    assert (signals.first_token.mean, signals.completions, signals.latency.mean) == (2.0, 0.0, None)


def test_traces_are_reproducible():
    for made in (traces.diurnal(20), traces.flash_crowd(5), traces.bursts(20), traces.ramp(20)):
        assert (np.diff(made.arrivals) >= 0).all()
        assert 0 <= made.arrivals[0] <= made.arrivals[-1] <= made.seconds
    assert np.array_equal(traces.bursts(20).arrivals, traces.bursts(20).arrivals)
    crowd = traces.flash_crowd(5, seconds=7200)
    calm = np.histogram(crowd.arrivals, bins=120)[0] / 60
    assert calm[:20].mean() == pytest.approx(5, rel=0.1)
    assert calm[27:34].mean() == pytest.approx(50, rel=0.1)


def test_hpa_holds_a_day_by_its_concurrency():
    outcome = one(
        traces.diurnal(60, 3600), lambda: Hpa(HpaSettings(metric=HpaMetric.CONCURRENCY, target=2)), Allocation(2)
    )
    assert outcome.violations < 0.05
    assert 2 < outcome.timeline.desired.max() < 30
