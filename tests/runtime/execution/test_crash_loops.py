"""Instances that end before they answer, at times of the test's choosing."""

import asyncio

import pytest
from tests.runtime.execution.fakes import SECOND, ask, settle
from tests.runtime.execution.test_dispatcher import Bench

from argosy_common import device_errors
from argosy_common.crash_loops import LAST_PAUSE_S, last_of, matches, pause_s
from argosy_runtime.errors import ServingError, internal

pytestmark = pytest.mark.usefixtures("cancelled_tasks")


@pytest.fixture
async def bench() -> Bench:
    """Return one instance that serves."""
    return await Bench().start()


async def end(bench: Bench) -> str:
    """Send a request that ends the instance; return its error."""
    client = bench.ask("poison")
    bench.made[-1].die()
    await settle()
    return client.error


async def come_back(bench: Bench, row: int) -> None:
    """Let the instance start again exactly when the pause is over."""
    made = len(bench.made)
    await bench.clock.pass_time(round(pause_s(row) * SECOND) - 1)
    assert len(bench.made) == made
    await bench.clock.pass_time(1)
    assert len(bench.made) == made + 1
    bench.made[-1].load()
    await settle()


async def test_the_pauses_grow_with_every_end_without_an_answer(bench):
    for row in range(1, 12):
        await end(bench)
        await come_back(bench, row)
    assert [pause_s(row) for row in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert pause_s(9) == pause_s(2000) == LAST_PAUSE_S


async def test_the_third_end_in_a_row_makes_a_model_unready_with_the_reason(bench):
    for row in (1, 2):
        await end(bench)
        assert bench.dispatcher.ready
        await come_back(bench, row)
        assert not bench.dispatcher.caution
    await end(bench)
    assert not bench.dispatcher.ready
    assert matches(bench.dispatcher.problem)
    assert "m_2 died; it ended 3 times in a row without an answer" in bench.dispatcher.problem
    assert "m_2 died" in bench.ask("refused").error


async def test_what_waits_is_refused_when_a_crash_loop_begins(bench):
    for row in (1, 2):
        await end(bench)
        await come_back(bench, row)
    bench.ask("poison")
    waiting = bench.ask("waits")
    bench.made[-1].die()
    await settle()
    assert "in a row" in waiting.error


BROKEN = "CUDA error: uncorrectable ECC error encountered"


async def test_an_instance_with_a_device_error_is_replaced_after_its_answers(bench):
    client = bench.ask("poison")
    bench.made[0].fail(internal(f"Traceback\nRuntimeError: {BROKEN}\nand more", device_error=BROKEN))
    assert BROKEN in client.error
    await settle()
    assert bench.made[0].dead
    await come_back(bench, 1)
    bench.ask("fine")
    bench.made[-1].finish(internal(f"a request that says {BROKEN}"))
    await settle()
    assert not bench.made[-1].dead


async def test_no_request_goes_to_an_instance_that_has_met_a_device_error(bench):
    bench.made[0].dies_at_once = False
    client = bench.ask("poison")
    bench.made[0].finish(internal("RuntimeError", device_error=BROKEN))
    assert client.error
    waiting = bench.ask("waits")
    await settle()
    assert bench.made[0].ids() == []
    bench.made[0].die()
    await settle()
    await come_back(bench, 1)
    bench.made[-1].finish()
    assert waiting.over
    assert not waiting.error


@pytest.mark.parametrize("answered", [False, True])
async def test_no_request_goes_to_an_instance_with_a_device_error_in_its_batch(answered):
    bench = await Bench(decoupled=answered).start()
    bench.ask("poison")
    waiting = bench.ask("waits")
    if answered:
        bench.made[0].respond()
    bench.made[0].fail(internal("RuntimeError", device_error=BROKEN))
    await settle()
    assert bench.made[0].dead
    await come_back(bench, 1)
    bench.made[-1].finish()
    assert waiting.over
    assert not waiting.error


@pytest.mark.parametrize("responded", [False, True])
async def test_a_device_error_of_any_request_of_a_batch_replaces_the_instance(responded):
    bench = await Bench(delay_ns=1000).start()
    clients = [bench.ask("fine"), bench.ask("poison")]
    await bench.clock.pass_time(1000)
    waiting = bench.ask("waits")
    if responded:
        bench.made[0].respond()
    bench.made[0].finish(None, internal("RuntimeError", device_error=BROKEN))
    await settle()
    assert [bool(client.error) for client in clients] == [False, True]
    assert bench.made[0].dead
    await come_back(bench, 1)
    await bench.clock.pass_time(1000)
    bench.made[-1].finish()
    assert not waiting.error


async def test_a_warm_up_that_meets_a_device_error_after_its_answers_fails():
    bench = Bench(decoupled=True)
    starting = asyncio.create_task(bench.dispatcher.start([[ask("warm")]]))
    await settle()
    bench.made[0].load()
    await settle()
    bench.made[0].respond()
    bench.made[0].fail(internal("RuntimeError", device_error=BROKEN))
    with pytest.raises(ServingError, match="RuntimeError"):
        await starting


async def on_trial(bench: Bench) -> None:
    """Let the last instance start again after a crash loop."""
    for row in (1, 2, 3):
        bench.made[-1].die()
        await settle()
        await come_back(bench, row)


async def test_a_device_error_of_one_instance_leaves_one_that_has_answered():
    bench = await Bench(2, merge=False).start()
    await on_trial(bench)
    bench.ask("fine")
    bench.ask("poison")
    bench.made[-1].dies_at_once = False
    bench.made[-1].finish(internal("RuntimeError", device_error=BROKEN))
    assert not bench.dispatcher.caution


async def test_the_last_instance_is_on_trial_until_a_device_error_ends_it(bench):
    await on_trial(bench)
    bench.ask("poison")
    bench.made[-1].dies_at_once = False
    bench.made[-1].finish(internal("RuntimeError", device_error=BROKEN))
    assert matches(bench.dispatcher.caution)
    bench.made[-1].die()
    assert matches(bench.dispatcher.problem)
    assert not bench.dispatcher.caution


async def test_a_group_stops_while_an_instance_with_a_device_error_ends(bench):
    bench.made[0].dies_at_once = False
    bench.ask("poison")
    bench.made[0].finish(internal("RuntimeError", device_error=BROKEN))
    await bench.dispatcher.close(0)
    assert bench.made[0].stopped


async def test_an_instance_on_the_cpu_meets_no_device_error(bench):
    bench.made[0].on_cpu = True
    bench.ask("poison")
    bench.made[0].finish(internal(BROKEN, device_error=BROKEN))
    await settle()
    assert not bench.made[0].dead


@pytest.mark.parametrize(("words", "faulty"), [(BROKEN, True), ("CUDA error: device-side assert triggered", False)])
async def test_device_errors_in_a_row_are_the_reason_of_a_crash_loop(bench, words, faulty):
    for row in (1, 2, 3):
        bench.ask("poison")
        bench.made[-1].finish(internal("RuntimeError", device_error=words))
        await settle()
        if row < 3:
            await come_back(bench, row)
    assert not bench.dispatcher.ready
    assert words in bench.dispatcher.problem
    assert device_errors.matches(last_of(bench.dispatcher.problem)) is faulty
    assert matches(bench.dispatcher.problem)


@pytest.mark.parametrize(
    ("on_cpu", "words", "faulty"), [(False, BROKEN, True), (True, BROKEN, False), (False, "", False)]
)
async def test_a_load_that_meets_a_device_error_is_signed(on_cpu, words, faulty):
    bench = Bench()
    starting = asyncio.create_task(bench.dispatcher.start())
    await settle()
    bench.made[0].on_cpu = on_cpu
    bench.made[0].load(internal(f"ValueError: {BROKEN}", device_error=words))
    with pytest.raises(ServingError) as caught:
        await starting
    assert device_errors.matches(caught.value.message) is faulty


async def test_one_that_starts_again_is_on_trial_until_it_answers(bench):
    for row in (1, 2, 3):
        await end(bench)
        await come_back(bench, row)
    assert bench.dispatcher.ready
    assert matches(bench.dispatcher.caution)
    client = bench.ask("good")
    bench.made[-1].finish()
    assert not client.error
    assert not bench.dispatcher.caution
    await end(bench)
    assert bench.dispatcher.ready, "an answer ends the row"
    await come_back(bench, 1)


async def test_one_instance_that_answers_keeps_a_model_ready():
    bench = await Bench(instances=2).start()
    for row in (1, 2, 3, 4):
        good, bad = bench.ask("good"), bench.ask("bad")
        bench.made[0].finish()
        bench.made[-1].die()
        await settle()
        assert (good.error, bool(bad.error)) == ("", True)
        assert bench.dispatcher.ready
        assert not bench.dispatcher.caution
        await come_back(bench, row)


async def test_one_that_ends_before_its_answers_has_not_answered():
    bench = await Bench(decoupled=True).start()
    for row in (1, 2):
        bench.ask("poison")
        bench.made[-1].free()
        bench.made[-1].die()
        await settle()
        await come_back(bench, row)
    bench.ask("poison")
    bench.made[-1].free()
    bench.made[-1].die()
    await settle()
    assert matches(bench.dispatcher.problem)


async def test_on_trial_an_error_is_no_answer_and_a_stream_s_response_is():
    bench = await Bench(decoupled=True).start()
    for row in (1, 2, 3):
        await end(bench)
        await come_back(bench, row)
    bench.ask("wrong")
    bench.made[-1].fail(internal("it cannot"))
    assert matches(bench.dispatcher.caution)
    bench.ask("good")
    bench.made[-1].respond(final=False)
    assert not bench.dispatcher.caution
