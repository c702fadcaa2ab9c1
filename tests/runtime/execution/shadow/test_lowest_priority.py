"""Copies for a shadow at a dispatcher: behind all other requests, within none of their limits, owed to no client."""

import asyncio

import pytest
from tests.runtime.execution.fakes import SECOND, settle
from tests.runtime.execution.test_dispatcher import Bench

from argosy_runtime.errors import internal
from argosy_runtime.messages import SHADOW_PRIORITY
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy

pytestmark = pytest.mark.usefixtures("cancelled_tasks")

LEVELS = QueuePolicies(QueuePolicy(max_size=2, timeout_ns=SECOND), {}, levels=3, default_level=2)


async def test_a_copy_runs_after_requests_of_every_level_that_came_later():
    bench = await Bench(merge=False, policies=LEVELS).start()
    bench.ask("first")
    bench.ask("copy", priority=SHADOW_PRIORITY)
    for level in (3, 0, 1):
        bench.ask(f"level {level}", priority=level)
    order = []
    while bench.made[0].ids():
        order += bench.made[0].ids()[0]
        bench.made[0].finish()
    assert order == ["first", "level 1", "level 0", "level 3", "copy"]


async def test_the_limits_of_a_queue_are_not_for_what_is_mirrored():
    bench = await Bench(merge=False, policies=LEVELS).start()
    bench.ask("first")
    mirrored = [bench.ask("copy", priority=SHADOW_PRIORITY) for _ in range(5)]
    waiting = [bench.ask("request") for _ in range(2)]
    await bench.clock.pass_time(2 * SECOND)
    assert [client.over for client in waiting] == [True, True], "their timeout has passed"
    assert not any(client.over for client in mirrored)


async def test_what_is_mirrored_is_in_the_metrics_of_executions_alone():
    bench = await Bench(merge=False).start()
    bench.ask("a")
    for _ in range(3):
        bench.ask("copy", priority=SHADOW_PRIORITY)
    bench.ask("b")
    assert (bench.statistics.pending, bench.dispatcher.running) == (1, 1)
    bench.made[0].finish()
    bench.made[0].finish()
    assert (bench.statistics.pending, bench.dispatcher.running, bench.dispatcher.owes) == (0, 0, False)
    assert bench.dispatcher.has_open_requests
    bench.made[0].finish()
    bench.made[0].finish(internal("broken"))
    bench.made[0].finish()
    statistics = bench.statistics
    assert (statistics.success.count, sum(statistics.durations().counts), sum(statistics.queueing.counts)) == (2, 2, 2)
    assert not any(statistics.failures.values())
    assert (statistics.execution_count, statistics.inference_count, statistics.compute_infer.count) == (5, 4, 2)
    assert not bench.dispatcher.has_open_requests


async def test_responses_in_order_do_not_wait_for_a_copy():
    bench = await Bench(merge=False, ordered=True).start()
    bench.ask("first")
    copy = bench.ask("copy", priority=SHADOW_PRIORITY)
    later = bench.ask("later")
    bench.made[0].finish()
    bench.made[0].finish()
    assert later.over
    assert not copy.over


async def test_the_end_of_a_version_waits_for_nothing_that_is_mirrored():
    bench = await Bench(merge=False).start()
    running = bench.ask("running", priority=SHADOW_PRIORITY)
    waiting = bench.ask("waiting", priority=SHADOW_PRIORITY)
    closing = asyncio.create_task(bench.dispatcher.close(60.0))
    await settle()
    await closing
    assert (running.over, waiting.over, bench.made[0].stopped) == (True, True, True)
    assert bench.clock.now() == 0, "the grace is for requests of clients"


async def test_a_copy_shares_a_batch_with_no_request():
    bench = await Bench(delay_ns=SECOND).start()
    bench.ask("request")
    for name in ("copy", "other copy"):
        bench.ask(name, priority=SHADOW_PRIORITY)
    await bench.clock.pass_time(SECOND - 1)
    assert bench.made[0].ids() == [], "a batch of requests goes no sooner for a copy"
    bench.ask("last")
    await bench.clock.pass_time(1)
    assert bench.made[0].ids() == [["request", "last"]]
    bench.made[0].finish()
    assert bench.made[0].ids() == [["copy", "other copy"]]


async def test_what_is_mirrored_together_shares_a_batch():
    bench = await Bench().start()
    for name in ("copy", "other copy"):
        bench.ask(name, priority=SHADOW_PRIORITY)
    bench.ask("request")
    assert bench.made[0].ids() == [["request"]]
    await bench.clock.pass_time(0)
    bench.made[0].finish()
    assert bench.made[0].ids() == [["copy", "other copy"]]
