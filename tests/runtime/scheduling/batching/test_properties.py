"""Dynamic batching for any arrivals: nothing is lost or reordered, and batches are those of a simple model."""

from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.scheduling.batching.bench import batcher, queued, ran, submit

from argosy_runtime.scheduling.queued_request import QueuedRequest


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 4), st.sampled_from("ab")), max_size=30),
    delay=st.integers(0, 60),
    preferred=st.frozensets(st.integers(1, 8), max_size=2),
    free=st.integers(1, 3),
)
def test_every_request_runs_once_in_order_within_its_delay(arrivals, delay, preferred, free):
    scheduler = batcher(free, delay_ns=delay, preferred=preferred)
    waiting = [queued(at, size, key=((key, (), None),)) for at, size, key in sorted(arrivals)]
    expected = list(waiting)
    gone: list[QueuedRequest] = []
    now = 0
    while waiting or scheduler.pending:
        while waiting and waiting[0].arrived <= now:
            submit(scheduler, waiting.pop(0))
        step = scheduler.advance(now)
        for batch in ran(step):
            assert sum(one.size for one in batch) <= 8
            assert len({one.key for one in batch}) == 1
            gone += batch
        scheduler.free += [batch.instance for batch in step.batches]
        if not step.batches and scheduler.pending:
            assert step.wake_at is not None
            assert step.wake_at > now
            assert step.wake_at <= oldest(expected, gone) + delay
        if not step.batches:
            now = next_event(waiting, step.wake_at)
    assert gone == expected


def oldest(expected: list[QueuedRequest], gone: list[QueuedRequest]) -> int:
    """Return the arrival of the oldest request that still waits."""
    return expected[len(gone)].arrived


def next_event(waiting: list[QueuedRequest], wake_at: int | None) -> int:
    times = [one.arrived for one in waiting[:1]] + ([wake_at] if wake_at is not None else [])
    return min(times, default=0)


@given(
    waiting=st.lists(st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.integers(0, 20)), min_size=1, max_size=12),
    preferred=st.frozensets(st.integers(1, 8), max_size=3),
    delay=st.sampled_from([0, 10, 30]),
)
def test_batches_are_those_of_a_simple_model(waiting, preferred, delay):
    scheduler = batcher(len(waiting), preferred=preferred, delay_ns=delay)
    requests = [queued(at, size, key=((key, (), None),)) for size, key, at in waiting]
    submit(scheduler, *requests)
    now = 20
    step = scheduler.advance(now)
    expected = list(simple_batches(requests, preferred or {8}, delay, now))
    assert ran(step) == expected
    assert (step.wake_at is None) == (sum(map(len, expected)) == len(requests))


def simple_batches(waiting: list[QueuedRequest], preferred: set[int], delay: int, now: int):
    """Yield the batches that go now, by looking at every beginning of the queue."""
    while waiting:
        most = max(preferred)
        starts = [waiting[:count] for count in range(1, len(waiting) + 1)]
        limit = 8 if delay else most
        allowed = [start for start in starts if len({one.key for one in start}) == 1 and fits(start, limit)]
        longest = allowed[-1]
        overdue = delay and any(one.arrived + delay <= now for one in longest)
        favoured = [start for start in allowed if sum(one.size for one in start) in preferred]
        within = [start for start in allowed if fits(start, most)]
        closed = longest != waiting or sum(one.size for one in longest) >= most
        if favoured and not overdue:
            batch = favoured[-1]
        elif len(within) < len(allowed) and not overdue:
            batch = within[-1]
        elif closed or overdue or not delay:
            batch = longest
        else:
            return
        yield batch
        waiting = waiting[len(batch) :]


def fits(start: list[QueuedRequest], limit: int) -> bool:
    """Return whether requests can be a batch of `limit` rows; one alone always can."""
    return len(start) == 1 or sum(one.size for one in start) <= limit
