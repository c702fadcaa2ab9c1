"""Service times and engines' capacity, learnt from what was measured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.fleet.scaling.loads import POLICY, START, Member

from argosy.fleet.scaling.capacity.engine import Engine
from argosy.fleet.scaling.capacity.service import Batches, Experience, Service
from argosy.fleet.scaling.decision import Allocation
from argosy.fleet.scaling.learning.engines import EngineUse
from argosy.fleet.scaling.policy import Bounds, Policy, Targets
from argosy.fleet.scaling.wanted.needs import needs
from argosy.fleet.signals.signals import Distribution, Signals

times = st.floats(0.001, 1.0)
ENGINE = Engine(Service(0.02, 0.0035), 16.0, 200.0)


def of(service: Service, *points: tuple[float, float]) -> Experience:
    """Executions of (rows, busy instances)."""
    found = Experience()
    for rows, busy in points:
        found = found.learnt(Batches(rows, busy, service.seconds(rows, busy), 500.0))
    return found


@given(times, times, st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_what_batches_of_many_kinds_take_is_found_again(fixed: float, per_row: float, contention: float) -> None:
    truth = Service(fixed, per_row, contention)
    found = of(truth, (1, 1), (4, 1), (8, 1), (1, 2), (8, 2), (8, 3)).service()
    assert found is not None
    for rows, busy in ((1, 1), (8, 1), (8, 3)):
        assert found.seconds(rows, busy) == pytest.approx(truth.seconds(rows, busy), rel=0.15)


def test_what_only_takes_turns_is_found_though_batches_grow_with_the_instances() -> None:
    found = of(Service(0.0, 0.03, 1.0), (1.1, 1.0), (2.5, 2.0), (6.0, 3.0)).service()
    assert found is not None
    assert found.contention >= 0.8


def test_a_few_odd_executions_wipe_nothing_out_and_many_do() -> None:
    found = of(Service(0.1, 0.01), (4, 1))
    odd = Batches(4.0, 1.0, 0.7, 10.0)
    for _ in range(8):
        found = found.learnt(odd)
        assert found.batches[0].seconds == pytest.approx(0.14)
    assert found.learnt(odd).batches == (odd,)


@given(st.floats(0.0, 20.0), st.floats(0.0, 20.0))
def test_the_faster_requests_come_the_more_sequences_run_and_the_longer_they_wait(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert ENGINE.running(low) <= ENGINE.running(high)
    assert ENGINE.wait(low, 0.99) <= ENGINE.wait(high, 0.99)


@given(st.floats(0.1, 60.0), st.floats(0.3, 1.0))
def test_an_engine_holds_what_it_says(longest: float, busy: float) -> None:
    rate = ENGINE.held(busy, ((0.99, longest),))
    assert rate <= ENGINE.most
    assert ENGINE.running(rate) <= busy * ENGINE.slots * (1 + 1e-6)
    assert ENGINE.wait(rate, 0.99) <= longest


def test_an_engines_slots_tokens_and_steps_are_learnt() -> None:
    """A token finds as many beside its own as run on average, where they know nothing of each other."""
    truth, running, use = Service(0.02, 0.0035), 6.0, None
    step = truth.seconds(1 + running)
    signals = Signals(
        START, 30.0, servers=2, completions=2 * running / step / 200, tokens=2 * running / step, busy=1.0,
        engine_running=2 * running, engine_waiting=0.0, kv_cache=running / 16,
    )  # fmt: skip
    for _ in range(40):
        use = EngineUse.after(use, signals, 5.0)
    assert use is not None
    batches = use.batches(30.0, 5.0)
    assert batches is not None
    assert (batches.rows, batches.seconds) == (pytest.approx(1 + running), pytest.approx(step))
    engine = use.engine(truth)
    assert engine is not None
    assert (engine.slots, engine.tokens) == (pytest.approx(16.0), pytest.approx(200.0))


def used(**changed: float | Distribution) -> EngineUse:
    """Of an engine that answers half a request a second, of 40 tokens, with one of its sixteen slots in use."""
    signals = replace(
        Signals(START, 30.0, servers=1, completions=0.5, tokens=20.0, engine_running=1.0, engine_waiting=0.0,
                kv_cache=1 / 16), **changed,
    )  # fmt: skip
    use = None
    for _ in range(40):
        use = EngineUse.after(use, signals, 5.0)
    assert use is not None
    return use


def test_the_time_between_tokens_tells_more_exactly_than_a_gauge_how_many_run() -> None:
    gauge, counted = used(engine_running=3.0), used(engine_running=3.0, between_tokens=Distribution(0.05))
    assert gauge.running == pytest.approx(3.0)
    assert counted.running == pytest.approx(0.05 * 20)
    batches = counted.batches(30.0, 5.0)
    assert batches is not None
    assert batches.seconds == pytest.approx(0.05)


def test_what_prompts_take_limits_an_engine_that_was_never_full() -> None:
    """Half a request a second waits 1 s for its first token: its prompt takes 2/3 s, so no more than 1.5/s are held."""
    truth = Service(0.049, 0.0001)
    blind, seen = used().engine(truth), used(first_token=Distribution(1.0)).engine(truth)
    assert blind is not None
    assert seen is not None
    assert blind.most > 5
    assert 1.2 < seen.most < 1.5
    full = used(first_token=Distribution(1.0), engine_waiting=5.0).engine(truth)
    assert full is not None
    assert full.most == pytest.approx(blind.most)


@pytest.mark.parametrize(("waiting", "wanted"), [(0.0, 1), (4.0, 2), (16.0, 3), (1000.0, 5)])
def test_requests_that_wait_for_a_full_cache_need_as_much_of_it_as_those_that_run(waiting: float, wanted: int) -> None:
    """And one look asks for at most four times what there is, of nine tenths each."""
    signals = Signals(START, 30.0, servers=1, engine_running=16.0, engine_waiting=waiting, kv_cache=1.0)
    found = needs(Policy(Bounds(max_replicas=20)), Allocation(), signals, {}, modelled=False, stood=True)
    assert [each.up for each in found if each.metric == "KV cache"] == [wanted]


def test_an_engine_that_tells_nothing_of_itself_has_no_model() -> None:
    signals = Signals(START, 30.0, servers=1, completions=1.0)
    assert EngineUse.after(None, signals, 5.0) is None
    silent = replace(signals, engine_running=0.0, tokens=0.0, kv_cache=0.0)
    use = EngineUse.after(EngineUse.after(None, silent, 5.0), silent, 60.0)
    assert use is not None
    assert (use.batches(30.0, 5.0), use.engine(Service(0.1, 0.0))) == (None, None)


def generating(member: Member, rate: float, p99: float, mean: float = 0.05) -> Signals:
    """Of engines that answer so many requests a second, in all."""
    servers = member.allocation.replicas
    running = ENGINE.running(rate / servers)
    return Signals(
        member.now, 30.0, servers=servers, arrivals=rate, tokens=200 * rate, completions=rate, busy=1.0,
        engine_running=running * servers, engine_waiting=0.0, kv_cache=running / 16, pending=0.0,
        running=running * servers, first_token=Distribution(mean, p99=p99),
        between_tokens=Distribution(ENGINE.service.seconds(1 + running)),
    )  # fmt: skip


@pytest.mark.parametrize(("p99", "mean", "more"), [(0.5, 0.4, False), (3.0, 0.1, False), (3.0, 0.5, True)])
def test_an_engine_that_answers_late_gets_more_whatever_its_model_says(p99: float, mean: float, more: bool) -> None:
    """And keeps them while the load is as it was, though nothing is late any more. A queue that one server has, while
    the mean is low, says nothing of what it holds.
    """
    member = Member(replace(POLICY, targets=Targets(first_token={"p99": 2.0})))
    for _ in range(60):
        member.step(generating(member, 0.4, 0.5))
    assert member.allocation.replicas == 1
    for _ in range(60):
        late = member.allocation.replicas == 1
        member.step(generating(member, 0.4, *((p99, mean) if late else (0.5, 0.05))))
    assert (member.allocation.replicas > 1) is more


def test_a_queue_inside_of_an_engine_drains_until_it_becomes_no_shorter() -> None:
    member = Member(replace(POLICY, targets=Targets(first_token={"p99": 200.0})))
    for waiting, drains in ((100.0, True), (60.0, True), (40.0, True), (40.0, False)):
        now = member.now
        member.step(replace(generating(member, 0.4, 0.5), engine_waiting=waiting))
        assert (member.memory.drained_at == now) is drains


def test_a_first_token_within_its_prompts_own_time_asks_for_nothing() -> None:
    member = Member(replace(POLICY, targets=Targets(first_token={"p99": 0.04})))
    for _ in range(120):
        decision = member.step(generating(member, 0.4, 0.5))
    assert decision.allocation.replicas == 1
    assert "; p99 40 ms is out of reach, a prompt alone takes 49 ms" in decision.message
    assert decision.limited_by == "spec.slo.timeToFirstToken.p99"


def test_a_language_models_sentence_has_its_target_and_its_steps() -> None:
    policy = replace(POLICY, targets=Targets(first_token={"p99": 2.0}))
    member = Member(policy)
    for _ in range(40):
        decision = member.step(generating(member, 0.4, 0.1))
    assert "a replica with 1 instance holds" in decision.message
    assert "within first token p99 2 s" in decision.message
    assert (decision.metric, decision.observed, decision.target) == ("first token p99", 0.1, 2.0)
    assert "a step takes" in decision.learnt
    assert "for each sequence" in decision.learnt
