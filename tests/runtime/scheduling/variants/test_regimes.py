"""Which variant serves, in virtual time: by requests in flight, with hysteresis, and never one that cannot answer."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.scheduling.variants.ramp import CURVES, SECOND, Loop

from argosy_common.regimes import Regimes, VariantState

READY, ASLEEP, WAKING, ABSENT = VariantState
BOTH = (READY, READY)
LEVELS = (1, 2, 4, 8, 12, 16, 32, 64, 32, 16, 12, 8, 4, 2, 1)


def regimes(*limits: int, count: int = 0, hysteresis: float = 0.25, dwell_s: float = 1.0) -> Regimes:
    return Regimes(count or len(limits) + 1, limits, hysteresis, round(dwell_s * SECOND), 0)


def test_up_at_once_beyond_the_crossover():
    chosen = regimes(8)
    chosen.advance(8, BOTH, 1)
    assert chosen.choose(BOTH) == 0
    chosen.advance(9, BOTH, 2)
    assert (chosen.choose(BOTH), chosen.since) == (1, 2)


def test_down_only_after_the_dwell_time_at_the_low_mark():
    chosen = regimes(8)
    chosen.advance(9, BOTH, 0)
    for in_flight, at in ((7, 5), (6, 6), (7, 6.9), (6, 7), (1, 7.8)):
        chosen.advance(in_flight, BOTH, round(at * SECOND))
        assert chosen.current == 1
    chosen.advance(6, BOTH, 8 * SECOND)
    assert chosen.current == 0


def test_batches_that_end_together_do_not_change_the_regime():
    chosen = regimes(8)
    for second in range(1, 20):
        for in_flight in (64, 0, 64):
            chosen.advance(in_flight, BOTH, second * SECOND + in_flight)
    assert (chosen.current, chosen.changes) == (1, 1)


def test_changes_are_no_closer_than_the_dwell_time():
    chosen, changes = regimes(8, dwell_s=2.0), []
    for tick in range(400):
        before = chosen.changes
        chosen.advance(64 if tick // 35 % 2 else 0, BOTH, tick * SECOND // 10)
        if chosen.changes > before:
            changes.append(tick / 10)
    assert len(changes) > 2
    assert all(later - earlier >= 2.0 for earlier, later in pairwise(changes))


def test_three_variants_skip_a_regime():
    chosen, three = regimes(4, 16), (READY, READY, READY)
    chosen.advance(40, three, 0)
    assert chosen.current == 2
    chosen.advance(1, three, SECOND)
    chosen.advance(1, three, 2 * SECOND)
    assert chosen.current == 0


@pytest.mark.parametrize("state", [ASLEEP, WAKING, ABSENT])
def test_the_regime_waits_for_a_variant_that_cannot_answer(state):
    chosen = regimes(8)
    chosen.advance(64, (READY, state), 0)
    assert chosen.choose((READY, state)) == 0
    chosen.advance(64, BOTH, 1)
    assert chosen.choose(BOTH) == 1
    chosen.advance(1, (state, READY), 9 * SECOND)
    assert chosen.choose((state, READY)) == 1


def test_a_regime_whose_variant_is_lost_is_served_by_the_nearest():
    chosen = regimes(4, 16)
    chosen.advance(40, (READY, READY, READY), 0)
    assert chosen.choose((READY, READY, ABSENT)) == 1
    assert chosen.choose((READY, READY, ABSENT), tried=(1,)) == 0
    assert chosen.choose((ASLEEP, WAKING, ABSENT)) == 1
    assert chosen.choose((ASLEEP, ABSENT, ABSENT)) == 0
    assert chosen.choose((ABSENT, ABSENT, ABSENT)) is None


def test_the_next_variant_is_woken_before_it_is_needed():
    chosen = regimes(8)
    assert chosen.needed(4, 0) == {0}
    assert chosen.needed(5, 0) == {0, 1}
    chosen.advance(9, BOTH, 0)
    assert chosen.needed(9, 0) == {1}
    chosen.advance(1, BOTH, SECOND // 4)
    half, full = 3 * SECOND // 4, 5 * SECOND // 4
    assert chosen.next_change(SECOND // 4) == half
    assert chosen.needed(1, half) == {0, 1}
    assert chosen.next_change(half) == full


def test_without_crossovers_the_first_that_can_answer_serves():
    chosen = Regimes(2, None, 0.1, SECOND, 0)
    chosen.advance(1000, BOTH, 0)
    assert (chosen.choose(BOTH), chosen.changes, chosen.next_change(0)) == (0, 0, None)
    assert chosen.choose((ABSENT, READY)) == 1
    assert chosen.needed(1000, 0) == {0}


def test_the_ramp_is_never_below_the_better_engine():
    loop = Loop(regimes(12, hysteresis=0.1))
    seen = []
    for clients in LEVELS:
        loop.run(clients, 5.0)  # former requests end, and the dwell time passes
        routed = loop.run(clients, 20.0)
        best = max(curve(clients) for curve in CURVES)
        seen.append(loop.regimes.current)
        assert routed >= 0.97 * best * 0.995, clients  # half a percent is the counting of whole requests
    assert seen == [int(clients > 12) for clients in LEVELS[:8]] + [1, 1, 1, 0, 0, 0, 0]
    assert loop.regimes.changes == 2


STATES = st.lists(st.sampled_from([READY, ASLEEP, WAKING, ABSENT]), min_size=3, max_size=3)


@given(st.lists(st.tuples(st.integers(0, 100), STATES, st.integers(0, 3 * SECOND)), max_size=50))
def test_whatever_happens_one_that_can_answer_is_chosen(events):
    chosen, now = regimes(8, 32), 0
    for in_flight, states, pause in events:
        now += pause
        before = chosen.current
        chosen.advance(in_flight, states, now)
        index = chosen.choose(states)
        if READY in states:
            assert index is not None
            assert states[index] is READY
        assert (index is None) == all(state is ABSENT for state in states)
        assert chosen.current == before or states[chosen.current] is READY
        assert chosen.current in chosen.needed(in_flight, now)


def test_a_restored_state_goes_on_where_it_was():
    first = regimes(8, dwell_s=1.0)
    first.advance(9, BOTH, SECOND)
    first.advance(3, BOTH, round(1.5 * SECOND))
    second = regimes(8, dwell_s=1.0)
    second.resume(first.state)
    assert second.state == first.state
    for chosen in (first, second):
        chosen.advance(3, BOTH, round(2.4 * SECOND))
        assert chosen.current == 1, "not low for long enough"
        chosen.advance(3, BOTH, round(2.6 * SECOND))
    assert first.state == second.state == (0, round(2.6 * SECOND), 2, round(2.6 * SECOND), 3)


def test_after_a_changed_crossover_the_dwell_time_still_counts():
    former = regimes(8)
    former.advance(9, BOTH, 5 * SECOND)
    changed = regimes(20)
    changed.resume(former.state)
    changed.advance(9, BOTH, round(5.9 * SECOND))
    assert (changed.current, changed.changes) == (1, 1)
    changed.advance(1, BOTH, round(6.1 * SECOND))
    assert changed.current == 0


def test_without_crossovers_no_former_regime_is_continued():
    former = regimes(8)
    former.advance(9, BOTH, SECOND)
    unknown = Regimes(2, None, 0.25, SECOND, 2 * SECOND)
    unknown.resume(former.state)
    assert (unknown.current, unknown.since) == (0, 2 * SECOND)


def test_a_restored_regime_of_a_variant_that_is_gone_is_the_last_one():
    former = regimes(2, 4)
    former.advance(5, (READY, READY, READY), SECOND)
    fewer = regimes(2)
    fewer.resume(former.state)
    assert (former.current, fewer.current) == (2, 1)
