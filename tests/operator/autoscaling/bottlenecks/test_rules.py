"""Each rule, where it holds and right beside; the seeds' own example among them."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.bottlenecks.inputs import FULL, IDLE, START, USED, ensemble, gpu, measured, model, stage

from argosy.autoscaling.bottlenecks.bottleneck import BottleneckKind
from argosy.autoscaling.bottlenecks.rules import RULES, findings
from argosy.autoscaling.bottlenecks.subject import Lever, Subject
from argosy.autoscaling.metrics.signals import Distribution, Signals

K = BottleneckKind


def kinds(subject: Subject) -> list[BottleneckKind]:
    """The rules that hold, the gravest first."""
    return [each.kind for each in findings(subject)]


def test_nothing_holds_up_what_runs_well() -> None:
    signals = measured(busy=0.6, batch=6.0, max_batch=8, cache_hits=0.9, kv_cache=0.4, out_of_memory=0.0)
    assert kinds(model(signals, {"p99": 0.2}, window_s=0.002)) == []


def test_a_starved_model_is_told_with_its_numbers_and_what_to_do() -> None:
    (found,) = findings(model(measured(wait=0.08, busy=0.98), gpus=(gpu(IDLE),), instances=2))
    assert (found.kind, found.stage) == (K.STARVED_STAGE, "bert")
    assert "requests wait 80 % of their time for an instance (over 50 %)" in found.evidence
    assert "its instances are busy 98 % of the time (over 70 %)" in found.evidence
    assert "its GPUs are used 12 % (under 90 %)" in found.evidence
    assert found.advice == "more instances of bert (now 2 on each device)"


def test_what_argosy_may_do_it_says_that_it_does() -> None:
    (found,) = findings(model(measured(wait=0.08, busy=0.98), gpus=(), levers=frozenset({Lever.INSTANCES})))
    assert found.advice.endswith("; Argosy does so by itself where its targets are missed, within its bounds")


@pytest.mark.parametrize(
    ("wait", "busy", "window", "gpus", "starved"),
    [
        (0.08, 0.98, None, (gpu(IDLE),), True),
        (0.08, 0.98, None, (), True),  # on the CPU, or nobody measured GPUs
        (0.08, None, None, (gpu(IDLE),), True),  # Triton does not tell how busy instances are
        (0.015, 0.98, None, (gpu(IDLE),), False),  # waits for less than it is executed
        (0.08, 0.2, None, (gpu(IDLE),), False),  # instances are free
        (0.08, 0.98, 0.075, (gpu(IDLE),), False),  # it waits for its batch, not for an instance
        (0.08, 0.98, None, (gpu(USED),), True),  # used well, with some time left
        (0.08, 0.98, None, (gpu(FULL),), False),  # the GPU has no time left
    ],
)
def test_starved_is_who_waits_for_instances_beside_a_gpu_with_time_left(wait, busy, window, gpus, starved) -> None:
    subject = model(measured(wait=wait, busy=busy), window_s=window, gpus=gpus)
    assert (K.STARVED_STAGE in kinds(subject)) is starved


def test_microseconds_hold_nobody_up() -> None:
    assert kinds(model(measured(wait=0.0004, compute=0.0001, busy=0.9), gpus=())) == []


def test_batches_of_one_under_load_want_a_longer_window() -> None:
    collapsed = measured(busy=0.9, batch=1.05, max_batch=16)
    (found,) = findings(model(collapsed, window_s=0.0005))
    assert found.kind is K.COLLAPSED_BATCHES
    assert "batches have 1.05 rows (under 1.5)" in found.evidence
    assert "(now 0.5 ms)" in found.advice
    assert kinds(model(replace(collapsed, busy=0.3), window_s=0.0005)) == []  # no load
    assert kinds(model(replace(collapsed, batch=4.0), window_s=0.0005)) == []
    assert kinds(model(collapsed, window_s=None)) == [K.COLLAPSED_BATCHES]  # they are not joined, and could be
    assert kinds(model(collapsed, joins=False)) == []  # of sequences they cannot be
    assert kinds(model(replace(collapsed, tokens=5.0))) == []  # an engine joins them by itself


def test_a_window_that_eats_the_budget_without_filling_batches_is_too_long() -> None:
    slow = measured(wait=0.05, compute=0.02, batch=2.0, max_batch=16, latency=Distribution(mean=0.07, p99=0.12))
    (found,) = findings(model(slow, {"p99": 0.1}, window_s=0.05))
    assert found.kind is K.WINDOW_TOO_LONG
    assert "p99 120 ms of 100 ms" in found.evidence
    assert kinds(model(slow, {"p99": 0.2}, window_s=0.05)) == []  # within the budget
    assert kinds(model(slow, window_s=0.05)) == []  # nothing is asked for
    assert kinds(model(replace(slow, batch=12.0), {"p99": 0.1}, window_s=0.05)) == []


def test_gpus_are_used_well_between_seventy_and_ninety_per_cent() -> None:
    assert kinds(model(measured(), gpus=(gpu(FULL),))) == [K.SATURATED_GPU]
    assert kinds(model(measured(arrivals=0.0), gpus=(gpu(FULL),))) == []  # by somebody else
    assert kinds(model(measured(), gpus=(gpu(USED),), replicas=3)) == []
    assert kinds(model(measured(), gpus=(gpu(0.3),), replicas=3)) == [K.IDLE_GPU]
    assert kinds(model(measured(), gpus=(gpu(0.3),), replicas=1)) == []  # there is none to take away
    assert kinds(model(measured(), gpus=(gpu(0.5),), replicas=2)) == []  # the other one would be at 100 %
    assert kinds(model(measured(arrivals=0.0), gpus=(gpu(0.3),), replicas=3)) == []


def test_requests_that_fail_for_want_of_memory_come_before_all_that_waits() -> None:
    found = kinds(model(measured(wait=0.08, busy=0.98, out_of_memory=0.2), gpus=(gpu(IDLE),)))
    assert found == [K.OUT_OF_MEMORY, K.STARVED_STAGE]


def test_a_full_gpu_that_requests_wait_for_is_graver_than_one_that_they_do_not() -> None:
    small = {"busy": 0.9, "batch": 1.0, "max_batch": 8}
    waiting = findings(model(measured(wait=0.03, **small), gpus=(gpu(FULL),)))
    assert [each.kind for each in waiting] == [K.SATURATED_GPU, K.COLLAPSED_BATCHES, K.SATURATED_GPU]
    assert kinds(model(measured(**small), gpus=(gpu(FULL),))) == [K.COLLAPSED_BATCHES, K.SATURATED_GPU]


def test_memory_pressure_has_two_signs() -> None:
    assert kinds(model(measured(kv_cache=0.96, engine_waiting=3.0))) == [K.MEMORY_PRESSURE]
    assert kinds(model(measured(kv_cache=0.96, engine_waiting=0.0))) == []
    assert kinds(model(measured(), gpus=(gpu(USED, memory=0.95),))) == [K.MEMORY_PRESSURE]
    # An engine takes all memory for its KV cache, which says nothing of a lack.
    assert kinds(model(measured(kv_cache=0.2), gpus=(gpu(USED, memory=0.95),))) == []


def test_a_response_cache_that_seldom_answers_is_told() -> None:
    assert kinds(model(measured(cache_hits=0.4))) == [K.LOW_CACHE_HIT_RATE]
    assert kinds(model(measured(cache_hits=0.71))) == []
    assert kinds(model(measured(cache_hits=0.4, arrivals=0.1))) == []


def test_an_slo_below_the_models_own_time_is_told_with_both_numbers() -> None:
    found = findings(model(measured(compute=0.12), {"p99": 0.1}))[0]
    assert found.kind is K.SLO_BELOW_COMPUTE
    assert "120 ms of p99 100 ms" in found.evidence
    assert "more replicas do not help" in found.advice


def test_an_slo_below_the_longest_way_of_an_ensemble_is_told() -> None:
    stages = [stage("one", measured(compute=0.06)), stage("two", measured(compute=0.06))]
    assert K.SLO_BELOW_COMPUTE in kinds(ensemble(*stages, latency={"p99": 0.1}))
    side_by_side = [replace(each, reads=()) for each in stages]
    signals = measured(wait=0, compute=0.06)
    assert kinds(Subject("both", signals, tuple(side_by_side), is_ensemble=True, latency={"p99": 0.1})) == []


def test_of_an_ensemble_the_starved_stage_is_named() -> None:
    subject = ensemble(
        stage("tokenizer", measured(compute=0.001), gpus=()),
        stage("embedder", measured(wait=0.3, compute=0.01, busy=0.99), gpus=(gpu(IDLE),)),
        stage("llm", measured(compute=0.1, tokens=900.0)),
    )
    (found, *_) = findings(subject)
    assert (found.kind, found.stage) == (K.STARVED_STAGE, "embedder")
    assert found.share is not None
    assert 700 < found.share < 760


def test_several_stages_of_one_instance_serialise_the_ensemble() -> None:
    starved = measured(wait=0.05, compute=0.02, busy=0.9)
    subject = ensemble(
        stage("embedder", starved, gpus=(gpu(IDLE),)),
        stage("safety", replace(starved, queue=Distribution(mean=0.09)), gpus=(gpu(IDLE),)),
        stage("llm", measured(compute=0.1)),
    )
    assert findings(subject)[0].key == (K.SERIALISED_ENSEMBLE, "safety")
    two = tuple(replace(each, instances=2) for each in subject.stages)
    assert K.SERIALISED_ENSEMBLE not in kinds(replace(subject, stages=two))


def test_a_fast_engine_behind_a_slow_step_does_not_mislead() -> None:
    subject = ensemble(
        stage("embedder", measured(compute=0.35)),
        stage("llm", measured(compute=0.12, tokens=2000.0)),
    )
    (found,) = findings(subject)
    assert (found.kind, found.stage) == (K.SLOW_AROUND_ENGINE, "embedder")
    assert "the engine takes 26 % of a request's time (under 50 %)" in found.evidence
    assert "a request spends 74 % of its time there, 351 ms of 472 ms (over 25 %)" in found.evidence
    assert kinds(ensemble(subject.stages[1])) == []


def test_every_kind_has_a_rule() -> None:
    assert {rule.kind for rule in RULES} == set(BottleneckKind)


def test_of_what_nobody_measured_nothing_is_said() -> None:
    assert kinds(model(Signals(START, 60.0), {"p99": 0.1}, gpus=())) == []
    assert kinds(ensemble(stage("a", Signals(START, 60.0)), latency={"p99": 0.1})) == []


def test_a_stage_takes_no_more_than_the_whole_however_little_that_was() -> None:
    starved = stage("a", measured(wait=1.0, busy=0.9), gpus=())
    assert {found.share for found in findings(ensemble(starved, latency_s=5e-324))} == {1000}


_NUMBER = st.none() | st.floats(0, 1e6)
_SIGNALS = st.builds(
    Signals,
    at=st.just(START),
    window_s=st.just(60.0),
    latency=st.builds(Distribution, mean=_NUMBER, p99=_NUMBER),
    queue=st.builds(Distribution, mean=_NUMBER),
    **{
        field.name: st.none() | st.integers(0, 64) if field.name == "max_batch" else _NUMBER
        for field in fields(Signals)
        if field.default is None
    },
)


@given(_SIGNALS, _SIGNALS, st.none() | st.floats(0, 10), st.integers(0, 3))
def test_whatever_is_measured_each_finding_says_why_and_what_to_do(one, two, window, replicas) -> None:
    stages = [stage(name, each, window_s=window, replicas=replicas) for name, each in (("a", one), ("b", two))]
    for subject in (model(one, {"p99": 0.1}, window_s=window), ensemble(*stages, latency={"p99": 0.1})):
        for found in findings(subject):
            assert found.evidence
            assert found.advice
            assert "{" not in found.advice
            assert found.share is None or 0 <= found.share <= 1000
