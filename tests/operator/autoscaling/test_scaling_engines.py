"""The capacity of an engine, and its estimate from measurements."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.autoscaling.loads import POLICY, START, Member

from argosy.autoscaling.capacity.engine import Engine, EngineUse, engine_use
from argosy.autoscaling.capacity.options import Limit
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.explain import seconds
from argosy.autoscaling.load import Load, load_of
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Bounds, Policy, Targets
from argosy.autoscaling.recommend import Need, recommended
from argosy.autoscaling.settings import MOST_SLOTS
from argosy.autoscaling.stage import Stage

STEP = Service(0.02, 0.0035)


def engine_of(slots: float, tokens: float, prompt_s: float = 0.0) -> Engine:
    engine = EngineUse(slots, tokens, 500.0, prompt_s, 500.0).engine(STEP)
    assert engine is not None
    return engine


def within(engine: Engine, busy: float, longest: float) -> float:
    """Return the most requests a second with at most `longest` to the first token of 99 %."""
    return engine.within(Limit("first token p99", 0.99, longest), busy * engine.most)


ENGINE = engine_of(16.0, 200.0)


def test_a_full_engine_executes_a_request_in_every_slot() -> None:
    assert ENGINE.most == pytest.approx(16 / (200 * STEP.seconds(16)))
    assert engine_of(1.0, 10.0, 0.5).most == pytest.approx(1 / (10 * STEP.seconds(1) + 0.5))


@given(st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.sampled_from((0.0, 0.05, 2.0)))
def test_faster_arrivals_mean_longer_waits(one: float, other: float, prompt_s: float) -> None:
    engine, (low, high) = engine_of(16.0, 200.0, prompt_s), sorted((one, other))
    assert engine.first_token(low, 0.99) <= engine.first_token(high, 0.99)


@given(st.floats(0.1, 60.0), st.floats(0.3, 1.0))
def test_a_rate_within_the_limits_is_within_them(longest: float, busy: float) -> None:
    rate = within(ENGINE, busy, longest)
    assert rate <= busy * ENGINE.most
    assert ENGINE.first_token(rate, 0.99) <= longest


@given(st.floats(0.05, 2.0), st.floats(0.01, 20.0), st.floats(1.0, 1.3))
def test_prompts_that_arrive_faster_wait_longer(prompt_s: float, longest: float, more: float) -> None:
    engine = engine_of(16.0, 30.0, prompt_s)
    rate = within(engine, 0.9, longest)
    assert rate * prompt_s < 1
    assert not rate or engine.first_token(rate, 0.99) <= longest
    assert rate <= within(engine, 0.9, more * longest) * (1 + 1e-3)


def used(**changed: float | Distribution) -> tuple[EngineUse, Signals]:
    """Return the use of an engine that answers half a request of 40 tokens a second, in one of sixteen slots."""
    signals = replace(
        Signals(START, 30.0, servers=1, completions=0.5, tokens=20.0, engine_running=1.0, engine_waiting=0.0,
                kv_cache=1 / 16), **changed,
    )  # fmt: skip
    use = EngineUse()
    for _ in range(40):
        use = use.after(signals, 5.0, queued=False)
    return use, signals


def test_an_engines_slots_tokens_and_steps_are_estimated() -> None:
    """A token sees as many other sequences as run on average, where they are independent."""
    running, step = 6.0, STEP.seconds(7.0)
    use, signals = used(
        servers=2, completions=2 * running / step / 200, tokens=2 * running / step, engine_running=2 * running,
        kv_cache=running / 16,
    )  # fmt: skip
    batches = use.batches(signals, 5.0)
    assert batches is not None
    assert (batches.rows, batches.seconds) == (pytest.approx(1 + running), pytest.approx(step))
    assert (use.slots, use.tokens) == (pytest.approx(16.0), pytest.approx(200.0))


@pytest.mark.parametrize("running", [1e6, 1e30])
def test_an_engine_has_no_more_slots_than_any_has(running: float) -> None:
    use, _ = used(engine_running=running)
    assert use.slots <= MOST_SLOTS


def test_the_time_between_tokens_is_more_exact_than_a_gauge() -> None:
    for between_tokens, running in ((Distribution(), 3.0), (Distribution(0.05), 0.05 * 20)):
        use, signals = used(engine_running=3.0, between_tokens=between_tokens)
        batches = use.batches(signals, 5.0)
        assert batches is not None
        assert (batches.rows, batches.seconds) == (pytest.approx(1 + running), pytest.approx(running / 20))


def test_an_engine_has_no_steps_before_it_answered_some_requests() -> None:
    use, signals = used()
    assert EngineUse().after(signals, 5.0, queued=False).batches(signals, 5.0) is None
    assert use.batches(signals, 5.0) is not None


def test_what_prompts_take_limits_an_engine_that_was_never_full() -> None:
    """Half a request a second waits 1 s for its first token: its prompt takes 0.76 s, so fewer than 1.3/s are held."""
    steps = Service(0.049, 0.0001)
    blind, seen = used()[0].engine(steps), used(first_token=Distribution(1.0))[0].engine(steps)
    assert blind is not None
    assert seen is not None
    assert blind.most > 5
    assert 1.0 < seen.most < 1.3


def test_while_requests_wait_for_slots_prompts_take_all_the_time() -> None:
    """Until there are times to the first token: then only these count."""
    full, waiting = used(first_token=Distribution(30.0), engine_waiting=5.0)
    assert full.prompt_s == pytest.approx(1 / 0.5)
    measured = full.after(replace(waiting, first_token=Distribution(1.0), engine_waiting=0.0), 5.0, queued=False)
    assert measured.prompt_s == pytest.approx(0.764, abs=0.001)
    assert measured.after(waiting, 5.0, queued=False).prompt_s == measured.prompt_s
    assert measured.after(replace(waiting, engine_waiting=0.0), 5.0, queued=True).prompt_s == measured.prompt_s


def test_prompts_that_take_nothing_limit_nothing() -> None:
    engine = used(first_token=Distribution(0.04), between_tokens=Distribution(0.05))[0].engine(Service(0.049, 0.0001))
    assert engine is not None
    assert (engine.prompt_s, engine.most) == (0.0, pytest.approx(8, rel=0.1))


@pytest.mark.parametrize(("waiting", "needed"), [(0.0, 1), (4.0, 2), (16.0, 3), (1000.0, 5)])
def test_requests_that_wait_need_as_much_cache_as_those_that_run(waiting: float, needed: int) -> None:
    """One round asks for at most four times what there is, of nine tenths each."""
    signals = Signals(START, 30.0, servers=1, engine_running=16.0, engine_waiting=waiting, kv_cache=1.0)
    result = recommendation(Policy(Bounds(max_replicas=20)), Allocation(), signals)
    assert (result.metric, result.up) == ("KV cache", needed)


@pytest.mark.parametrize(("came", "replicas", "needed"), [(0.6, 1, 1), (1.5, 1, 3), (1.5, 4, 3)])
def test_a_filling_cache_is_extrapolated_to_a_replicas_readiness(came: float, replicas: int, needed: int) -> None:
    """More requests arrive than end, so the queue of now would ask too late. Replicas that start have no requests yet.
    Requests that clients cancel arrive and fill nothing.
    """
    signals = Signals(START, 20.0, servers=1, arrivals=came, completions=0.5, growth=came - 0.5, engine_running=10.0,
                      engine_waiting=0.0, kv_cache=0.6)  # fmt: skip
    policy = Policy(Bounds(max_replicas=20), startup_s=30)
    result = recommendation(policy, Allocation(replicas), signals)
    assert (result.metric, result.up) == ("KV cache", needed)
    assert recommendation(policy, Allocation(replicas), replace(signals, growth=0.0)).up == 1
    assert ("30 more before another replica is ready" in result.because) is (came > 1)


def recommendation(policy: Policy, allocation: Allocation, signals: Signals) -> Need:
    """Return the recommendation for an engine with these signals alone."""
    result = recommended(Stage(policy, allocation, signals, now=START), Load(), ())
    assert result is not None
    return result


@pytest.mark.parametrize(("running", "more"), [(16.0, True), (2.0, False)])
def test_a_queue_that_will_stay_needs_replicas_unless_slots_are_free(running: float, more: bool) -> None:
    member = Member(replace(POLICY, targets=Targets(first_token={"p99": 2.0})))
    for _ in range(12):
        member.step(generating(member, 0.4, 0.5))
    signals = replace(generating(member, 0.4, 0.5), arrivals=1.0, growth=0.6, engine_running=running)
    assert (load_of(Stage(member.policy, Allocation(), signals, memory=member.memory.own)).waiting > 0) is more


def test_an_engine_without_metrics_has_no_model() -> None:
    signals = Signals(START, 30.0, servers=1, completions=1.0)
    assert engine_use(signals, 5.0, queued=False) is None
    silent = replace(signals, engine_running=0.0, tokens=0.0, kv_cache=0.0)
    use = engine_use(silent, 5.0, queued=False)
    assert use is not None
    assert (use.batches(silent, 5.0), use.engine(Service(0.1, 0.0))) == (None, None)


def generating(member: Member, rate: float, p99: float, mean: float = 0.05) -> Signals:
    """Return signals of engines that answer so many requests a second, in all."""
    servers = member.allocation.replicas
    steps = 200 * rate / servers
    running = steps * STEP.seconds(1) / (1 - steps * STEP.per_row)
    between = STEP.seconds(1 + running)
    return Signals(
        member.now, 30.0, servers=servers, arrivals=rate, tokens=200 * rate, completions=rate, busy=1.0,
        engine_running=running * servers, engine_waiting=0.0, kv_cache=running / 16, pending=0.0,
        running=running * servers, first_token=Distribution(mean + between, p99=p99),
        between_tokens=Distribution(between),
    )  # fmt: skip


def test_a_first_token_within_its_prompts_own_time_asks_for_nothing() -> None:
    member = Member(replace(POLICY, targets=Targets(first_token={"p99": 0.04})))
    for _ in range(120):
        decision = member.step(generating(member, 0.4, 0.5))
    assert decision.allocation.replicas == 1
    assert "; p99 40 ms is out of reach, a prompt alone takes 49." in decision.message
    assert decision.limited_by == "spec.slo.timeToFirstToken.p99"


def test_a_language_models_sentence_has_its_target_and_its_steps() -> None:
    policy = replace(POLICY, targets=Targets(first_token={"p99": 2.0}))
    member = Member(policy)
    for _ in range(40):
        decision = member.step(generating(member, 0.4, 0.1))
    assert "a replica with 1 instance holds" in decision.message
    assert "within first token p99 2 s" in decision.message
    assert (decision.metric, decision.observed, decision.target) == ("first token p99", 0.1, 2.0)
    assert decision.estimate.startswith("a step takes 2")
    assert decision.estimate.endswith(" ms for each sequence, without prompts")


def test_tokens_come_more_slowly_the_more_requests_run() -> None:
    alone = ENGINE.between_tokens(0.0)
    assert alone == pytest.approx(STEP.seconds(1))
    rates = [ENGINE.most * share for share in (0.2, 0.4, 0.6, 0.8)]
    between = [ENGINE.between_tokens(rate) for rate in rates]
    assert sorted(between) == between
    assert between[0] > alone
    assert ENGINE.between_tokens(1 / (200 * STEP.per_row)) == inf
    with_prompts = engine_of(16.0, 200.0, 0.5)
    assert with_prompts.between_tokens(0.0) == pytest.approx(alone), "its own prompt is before its first token"
    assert with_prompts.between_tokens(rates[0]) > between[0]


@pytest.mark.parametrize(("p95", "unevenness"), [(None, 1.0), (2.0, 2.0)])
def test_a_target_between_tokens_limits_what_a_replica_holds(p95: float | None, unevenness: float) -> None:
    limit = STEP.seconds(4) * unevenness
    member = Member(replace(POLICY, targets=Targets(between_tokens={"p95": limit})))
    for _ in range(40):
        signals = generating(member, 0.4, 0.1)
        mean = signals.between_tokens.mean or 0.0
        between = Distribution(mean, p95=None if p95 is None else p95 * mean)
        decision = member.step(replace(signals, between_tokens=between))
    assert f"within between tokens p95 {seconds(limit)}" in decision.message
    assert (decision.metric, decision.target) == ("between tokens p95", limit)
    assert decision.estimate.startswith("a step takes 2")


def test_a_target_between_tokens_below_one_step_is_out_of_reach() -> None:
    member = Member(replace(POLICY, targets=Targets(between_tokens={"p95": 0.01})))
    for _ in range(60):
        decision = member.step(generating(member, 0.4, 0.1))
    assert decision.allocation.replicas == 1
    assert "; p95 10 ms is out of reach, the tokens of one request alone take 2" in decision.message
    assert decision.limited_by == "spec.slo.interTokenLatency.p95"


def test_before_an_engine_has_a_model_replicas_follow_the_measured_time_between_tokens() -> None:
    policy = Policy(Bounds(max_replicas=20), Targets(between_tokens={"p95": 0.05}))
    signals = Signals(START, 30.0, servers=2, arrivals=1.0, between_tokens=Distribution(0.04, p95=0.1))
    need = recommendation(policy, Allocation(2), signals)
    assert (need.metric, need.observed, need.target) == ("between tokens p95", 0.1, 0.05)
