"""Rules on both sides of their thresholds, also on the example of the seeds."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.bottlenecks.inputs import FULL, IDLE, START, USED, ensemble, gpu, measured, model, stage

from argosy.autoscaling.bottlenecks.rules import RULES, BottleneckKind, findings
from argosy.autoscaling.bottlenecks.subjects import Lever, Subject
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals

K = BottleneckKind


def kinds(subject: Subject) -> list[BottleneckKind]:
    """Return the rules that hold, the gravest first."""
    return [bottleneck.kind for bottleneck in findings(subject)]


def test_a_model_that_runs_well_has_no_bottleneck() -> None:
    signals = measured(busy=0.6, batch=6.0, max_batch=8, cache_hits=0.9, kv_cache=0.4, out_of_memory=0.0)
    assert kinds(model(signals, {"p99": 0.2}, window_s=0.002)) == []


def test_a_starved_model_is_reported_with_numbers_and_advice() -> None:
    (bottleneck,) = findings(model(measured(wait=0.08, busy=0.98), gpus=(gpu(IDLE),), instances=2))
    assert (bottleneck.kind, bottleneck.stage) == (K.STARVED_STAGE, "bert")
    assert "requests wait 80 % of their time for an instance (over 50 %)" in bottleneck.evidence
    assert "its instances are busy 98 % of the time (over 70 %)" in bottleneck.evidence
    assert "its GPUs are used 12 % (under 90 %)" in bottleneck.evidence
    assert bottleneck.advice == "more instances of bert (now 2 on each device)"


def test_advice_names_what_argosy_does_by_itself() -> None:
    (bottleneck,) = findings(model(measured(wait=0.08, busy=0.98), gpus=(), levers=frozenset({Lever.INSTANCES})))
    assert bottleneck.advice.endswith("; Argosy does so by itself where its targets are missed, within its bounds")


@pytest.mark.parametrize(
    ("wait", "busy", "window", "gpus", "starved"),
    [
        (0.08, 0.98, None, (gpu(IDLE),), True),
        (0.08, 0.98, None, (), True),  # on the CPU, or without measurements of GPUs
        (0.08, None, None, (gpu(IDLE),), True),  # Triton does not expose how busy instances are
        (0.015, 0.98, None, (gpu(IDLE),), False),  # waits for less than it is executed
        (0.08, 0.2, None, (gpu(IDLE),), False),  # instances are free
        (0.08, 0.98, 0.075, (gpu(IDLE),), False),  # it waits for its batch, not for an instance
        (0.08, 0.98, None, (gpu(USED),), True),  # used well, with some time left
        (0.08, 0.98, None, (gpu(FULL),), False),  # the GPU has no time left
    ],
)
def test_waiting_for_instances_while_the_gpu_has_time_is_starving(wait, busy, window, gpus, starved) -> None:
    subject = model(measured(wait=wait, busy=busy), window_s=window, gpus=gpus)
    assert (K.STARVED_STAGE in kinds(subject)) is starved


def test_a_wait_of_microseconds_is_no_bottleneck() -> None:
    assert kinds(model(measured(wait=0.0004, compute=0.0001, busy=0.9), gpus=())) == []


def test_batches_of_one_under_load_want_a_longer_window() -> None:
    collapsed = measured(busy=0.9, batch=1.05, max_batch=16)
    (bottleneck,) = findings(model(collapsed, window_s=0.0005))
    assert bottleneck.kind is K.COLLAPSED_BATCHES
    assert "batches have 1.05 rows (under 1.5)" in bottleneck.evidence
    assert "(now 0.5 ms)" in bottleneck.advice
    assert kinds(model(replace(collapsed, busy=0.3), window_s=0.0005)) == []  # no load
    assert kinds(model(replace(collapsed, batch=4.0), window_s=0.0005)) == []
    assert kinds(model(collapsed, window_s=None)) == [K.COLLAPSED_BATCHES]  # they are not joined, and could be
    assert kinds(model(collapsed, joins=False)) == []  # of sequences they cannot be
    assert kinds(model(replace(collapsed, tokens=5.0))) == []  # an engine joins them by itself


def test_a_window_that_eats_the_budget_without_filling_batches_is_too_long() -> None:
    slow = measured(wait=0.05, compute=0.02, batch=2.0, max_batch=16, latency=Distribution(mean=0.07, p99=0.12))
    (bottleneck,) = findings(model(slow, {"p99": 0.1}, window_s=0.05))
    assert bottleneck.kind is K.WINDOW_TOO_LONG
    assert "p99 120 ms of 100 ms" in bottleneck.evidence
    assert kinds(model(slow, {"p99": 0.2}, window_s=0.05)) == []  # within the budget
    assert kinds(model(slow, window_s=0.05)) == []  # there is no SLO
    assert kinds(model(replace(slow, batch=12.0), {"p99": 0.1}, window_s=0.05)) == []


def test_gpus_are_used_well_between_seventy_and_ninety_per_cent() -> None:
    assert kinds(model(measured(), gpus=(gpu(FULL),))) == [K.SATURATED_GPU]
    assert kinds(model(measured(arrivals=0.0), gpus=(gpu(FULL),))) == []  # by another model
    assert kinds(model(measured(), gpus=(gpu(USED),), replicas=3)) == []
    assert kinds(model(measured(), gpus=(gpu(0.3),), replicas=3)) == [K.IDLE_GPU]
    assert kinds(model(measured(), gpus=(gpu(0.3),), replicas=1)) == []  # there is none to take away
    assert kinds(model(measured(), gpus=(gpu(0.5),), replicas=2)) == []  # the other one would be at 100 %
    assert kinds(model(measured(arrivals=0.0), gpus=(gpu(0.3),), replicas=3)) == []


def test_requests_that_fail_for_want_of_memory_come_before_all_that_waits() -> None:
    matches = kinds(model(measured(wait=0.08, busy=0.98, out_of_memory=0.2), gpus=(gpu(IDLE),)))
    assert matches == [K.OUT_OF_MEMORY, K.STARVED_STAGE]


def test_a_full_gpu_is_graver_where_requests_wait_for_it() -> None:
    small = {"busy": 0.9, "batch": 1.0, "max_batch": 8}
    waiting = findings(model(measured(wait=0.03, **small), gpus=(gpu(FULL),)))
    assert [bottleneck.kind for bottleneck in waiting] == [K.SATURATED_GPU, K.COLLAPSED_BATCHES, K.SATURATED_GPU]
    assert kinds(model(measured(**small), gpus=(gpu(FULL),))) == [K.COLLAPSED_BATCHES, K.SATURATED_GPU]


def test_memory_pressure_has_two_signs() -> None:
    assert kinds(model(measured(kv_cache=0.96, engine_waiting=3.0))) == [K.MEMORY_PRESSURE]
    assert kinds(model(measured(kv_cache=0.96, engine_waiting=0.0))) == []
    assert kinds(model(measured(), gpus=(gpu(USED, memory=0.95),))) == [K.MEMORY_PRESSURE]
    # An engine takes all memory for its KV cache, which says nothing of a lack.
    assert kinds(model(measured(kv_cache=0.2), gpus=(gpu(USED, memory=0.95),))) == []


def engine(wait: float = 0.01, first: float = 0.1, between: float = 0.03, **others: float) -> Signals:
    """Return the signals of an engine: seconds until it runs a request, to its first token, and between tokens."""
    numbers = {"tokens": 900.0, "engine_running": 20.0, "engine_waiting": 0.0, "kv_cache": 0.4, "completions": 4.0}
    return measured(
        engine_queue=Distribution(wait),
        first_token=Distribution(first, p95=2 * first),
        between_tokens=Distribution(between, p95=2 * between),
        servers=2,
        **numbers | others,
    )


def test_requests_that_lose_their_cache_are_memory_pressure_even_if_none_waits() -> None:
    (bottleneck,) = findings(model(engine(preemptions=0.4)))
    assert bottleneck.kind is K.MEMORY_PRESSURE
    assert bottleneck.evidence == "0.1 preemptions come to a request (over 0.05)"
    assert kinds(model(engine(preemptions=0.16))) == []
    assert kinds(model(engine(preemptions=0.0, completions=0.0))) == []


@pytest.mark.parametrize(
    ("signals", "full"),
    [
        (engine(wait=0.3, first=0.5, engine_waiting=4.0), True),
        (engine(wait=0.3, first=0.5, engine_waiting=0.0), False),
        (engine(wait=0.1, first=0.5, engine_waiting=4.0), False),
        (engine(wait=0.015, first=0.02, engine_waiting=4.0), False),
        (engine(wait=0.3, first=0.5, engine_waiting=4.0, kv_cache=0.95), False),
        (replace(engine(wait=0.3, first=0.5, engine_waiting=4.0), kv_cache=None), True),
    ],
)
def test_an_engine_with_memory_left_that_lets_requests_wait_is_full(signals: Signals, full: bool) -> None:
    assert (K.FULL_ENGINE in kinds(model(signals))) is full


def test_prompts_that_take_the_time_to_the_first_token_are_named_with_their_length() -> None:
    slow = engine(wait=0.1, first=1.0, prompt_tokens=8000.0, cached_tokens=800.0)
    subject = replace(model(slow), first_token={"p95": 1.5})
    (bottleneck,) = findings(subject)
    assert bottleneck.kind is K.PREFILL_BOUND
    assert "of what slo.timeToFirstToken allows, p95 2 s of 1.5 s (over 100 %)" in bottleneck.evidence
    assert (
        "prompts take 90 % of it, with 2000 tokens on average, 10 % of which the prefix cache had"
        in bottleneck.evidence
    )
    assert kinds(replace(subject, first_token={"p95": 2.5})) == []
    assert kinds(replace(subject, first_token={})) == []
    waits = replace(slow, engine_queue=Distribution(0.6))
    assert kinds(replace(model(waits), first_token={"p95": 1.5})) == [], "they wait, nothing is to be computed faster"


def test_tokens_that_come_too_slowly_bind_an_engine_to_decoding() -> None:
    subject = replace(model(engine(between=0.05)), between_tokens={"p95": 0.08})
    (bottleneck,) = findings(subject)
    assert bottleneck.kind is K.DECODE_BOUND
    assert "is 125 % of what slo.interTokenLatency allows, p95 100 ms of 80 ms (over 100 %)" in bottleneck.evidence
    assert "with 10 requests in an engine at once" in bottleneck.evidence
    assert kinds(replace(subject, between_tokens={"p95": 0.2})) == []


def test_a_response_cache_that_seldom_answers_is_reported() -> None:
    assert kinds(model(measured(cache_hits=0.4))) == [K.LOW_CACHE_HIT_RATE]
    assert kinds(model(measured(cache_hits=0.71))) == []
    assert kinds(model(measured(cache_hits=0.4, arrivals=0.1))) == []


def test_an_slo_below_the_execution_time_is_reported_with_both() -> None:
    bottleneck = findings(model(measured(compute=0.12), {"p99": 0.1}))[0]
    assert bottleneck.kind is K.SLO_BELOW_COMPUTE
    assert "120 ms of p99 100 ms" in bottleneck.evidence
    assert "more replicas do not help" in bottleneck.advice


def test_an_slo_below_the_longest_way_of_an_ensemble_is_reported() -> None:
    stages = [stage("one", measured(compute=0.06)), stage("two", measured(compute=0.06))]
    assert K.SLO_BELOW_COMPUTE in kinds(ensemble(*stages, latency={"p99": 0.1}))
    side_by_side = [replace(one, reads=()) for one in stages]
    signals = measured(wait=0, compute=0.06)
    assert kinds(Subject("both", signals, tuple(side_by_side), is_ensemble=True, latency={"p99": 0.1})) == []


def test_of_an_ensemble_the_starved_stage_is_named() -> None:
    subject = ensemble(
        stage("tokenizer", measured(compute=0.001), gpus=()),
        stage("embedder", measured(wait=0.3, compute=0.01, busy=0.99), gpus=(gpu(IDLE),)),
        stage("llm", measured(compute=0.1, tokens=900.0)),
    )
    (bottleneck, *_) = findings(subject)
    assert (bottleneck.kind, bottleneck.stage) == (K.STARVED_STAGE, "embedder")
    assert bottleneck.share is not None
    assert 700 < bottleneck.share < 760


def test_several_stages_of_one_instance_serialise_the_ensemble() -> None:
    starved = measured(wait=0.05, compute=0.02, busy=0.9)
    subject = ensemble(
        stage("embedder", starved, gpus=(gpu(IDLE),)),
        stage("safety", replace(starved, queue=Distribution(mean=0.09)), gpus=(gpu(IDLE),)),
        stage("llm", measured(compute=0.1)),
    )
    assert findings(subject)[0].key == (K.SERIALISED_ENSEMBLE, "safety")
    two = tuple(replace(one, instances=2) for one in subject.stages)
    assert K.SERIALISED_ENSEMBLE not in kinds(replace(subject, stages=two))


def test_a_fast_engine_behind_a_slow_step_does_not_mislead() -> None:
    subject = ensemble(
        stage("embedder", measured(compute=0.35)),
        stage("llm", measured(compute=0.12, tokens=2000.0)),
    )
    (bottleneck,) = findings(subject)
    assert (bottleneck.kind, bottleneck.stage) == (K.SLOW_AROUND_ENGINE, "embedder")
    assert "the engine takes 26 % of a request's time (under 50 %)" in bottleneck.evidence
    assert "a request spends 74 % of its time there, 351 ms of 472 ms (over 25 %)" in bottleneck.evidence
    assert kinds(ensemble(subject.stages[1])) == []


def test_every_kind_has_a_rule() -> None:
    assert {rule.kind for rule in RULES} == set(BottleneckKind)


def test_without_measurements_there_is_no_bottleneck() -> None:
    assert kinds(model(Signals(START, 60.0), {"p99": 0.1}, gpus=())) == []
    assert kinds(ensemble(stage("a", Signals(START, 60.0)), latency={"p99": 0.1})) == []


def test_the_share_of_a_stage_is_at_most_all() -> None:
    starved = stage("a", measured(wait=1.0, busy=0.9), gpus=())
    assert {bottleneck.share for bottleneck in findings(ensemble(starved, latency_s=5e-324))} == {1000}


_NUMBER = st.none() | st.floats(0, 1e6)
_SIGNALS = st.builds(
    Signals,
    at=st.just(START),
    window_s=st.just(60.0),
    latency=st.builds(Distribution, mean=_NUMBER, p99=_NUMBER),
    queue=st.builds(Distribution, mean=_NUMBER),
    first_token=st.builds(Distribution, mean=_NUMBER, p95=_NUMBER),
    engine_queue=st.builds(Distribution, mean=_NUMBER),
    between_tokens=st.builds(Distribution, mean=_NUMBER, p95=_NUMBER),
    **{
        field.name: st.none() | st.integers(0, 64) if field.name == "max_batch" else _NUMBER
        for field in fields(Signals)
        if field.default is None
    },
)


@given(_SIGNALS, _SIGNALS, st.none() | st.floats(0, 10), st.integers(0, 3))
def test_every_bottleneck_has_evidence_and_advice(one, two, window, replicas) -> None:
    stages = [stage(name, signals, window_s=window, replicas=replicas) for name, signals in (("a", one), ("b", two))]
    for subject in (model(one, {"p99": 0.1}, window_s=window), ensemble(*stages, latency={"p99": 0.1})):
        subject = replace(subject, first_token={"p95": 0.1}, between_tokens={"p95": 0.1})
        for bottleneck in findings(subject):
            assert bottleneck.evidence
            assert bottleneck.advice
            assert "{" not in bottleneck.advice
            assert bottleneck.share is None or 0 <= bottleneck.share <= 1000
