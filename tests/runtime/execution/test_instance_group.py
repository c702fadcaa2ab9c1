"""Instances that load, die, come back and warm up, at times of the test's choosing."""

import asyncio

import pytest
from tests.runtime.execution.fakes import SECOND, Factory, FakeInstance, VirtualClock, ask, settle

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.execution.instance_group import InstanceGroup, Slot
from argosy_runtime.execution.warm_up import WarmUp
from argosy_runtime.messages import InferResponse
from argosy_runtime.telemetry.statistics import ModelStatistics

pytestmark = pytest.mark.usefixtures("cancelled_tasks")

WARM_UP_S = 5


class Listener:
    """The events of a group."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def instance_added(self, number: int) -> None:
        self.events.append(f"{number} added")

    def instance_died(self, number: int) -> None:
        self.events.append(f"{number} died")

    def instance_retired(self, number: int) -> None:
        self.events.append(f"{number} retired")

    def instance_leaves(self, number: int) -> bool:
        self.events.append(f"{number} retired")
        return True

    def instances_lost(self) -> None:
        self.events.append("lost")


class Bench:
    """A group that is starting."""

    def __init__(self, instances: int = 1, warm_up: int = 0) -> None:
        self.clock = VirtualClock()
        self.listener = Listener()
        self.factory = Factory()
        self.group = InstanceGroup([self.factory] * instances, self.listener, self.clock)
        batches = WarmUp([[ask("warm")]] * warm_up, ModelStatistics(), self.clock, WARM_UP_S)
        self.starting = asyncio.create_task(self.group.start(batches))

    @property
    def made(self) -> list[FakeInstance]:
        """Every instance that ever was."""
        return self.factory.made


async def test_one_that_dies_while_its_sibling_loads_is_not_among_the_living():
    bench = Bench(2)
    await settle()
    bench.made[0].load()
    await settle()
    bench.made[0].die()
    bench.made[1].load()
    await bench.starting
    assert bench.listener.events == ["1 added", "1 died", "2 added"]
    await bench.clock.pass_time(SECOND)
    bench.made[2].load()
    await settle()
    assert bench.listener.events[-1] == "3 added"
    assert bench.group.instance(3) is bench.made[2]


async def test_a_load_that_fails_ends_its_siblings_and_what_was_coming_back():
    bench = Bench(3)
    await settle()
    bench.made[0].load()
    bench.made[1].load()
    await settle()
    bench.made[1].die()
    bench.made[2].load(invalid("no"))
    with pytest.raises(ServingError, match="no"):
        await bench.starting
    assert bench.made[0].stopped
    await bench.clock.pass_time(100 * SECOND)
    assert len(bench.made) == 3


async def test_groups_that_fail_at_the_same_time_raise_their_own_errors(monkeypatch):
    stop = FakeInstance.stop

    async def slowly(instance, grace):
        for _ in range(5):
            await asyncio.sleep(0)
        await stop(instance, grace)

    monkeypatch.setattr(FakeInstance, "stop", slowly)
    benches = [Bench(2) for _ in range(3)]
    await settle()
    for number, bench in enumerate(benches):
        bench.made[0].load()
        bench.made[1].load(invalid(f"error {number}"))
    errors = await asyncio.gather(*(bench.starting for bench in benches), return_exceptions=True)
    assert [error.message for error in errors] == ["error 0", "error 1", "error 2"]


async def test_a_load_that_is_abandoned_leaves_nothing():
    bench = Bench(2)
    await settle()
    bench.made[0].load()
    await settle()
    bench.starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bench.starting
    assert bench.made[0].stopped


async def test_one_that_comes_back_is_warm_before_it_is_among_the_living():
    bench = Bench(warm_up=2)
    await settle()
    bench.made[0].load()
    for _ in range(2):
        await settle()
        assert bench.listener.events == []
        bench.made[0].finish()
    await bench.starting
    bench.made[0].die()
    await bench.clock.pass_time(SECOND)
    bench.made[1].load()
    for _ in range(2):
        await settle()
        assert bench.listener.events == ["1 added", "1 died"]
        bench.made[1].finish()
    await settle()
    assert bench.listener.events == ["1 added", "1 died", "2 added"]


async def test_one_that_does_not_get_warm_in_time_fails_its_load():
    bench = Bench(warm_up=2)
    await settle()
    bench.made[0].load()
    await bench.clock.pass_time(WARM_UP_S * SECOND // 2)
    bench.made[0].finish()
    await bench.clock.pass_time(WARM_UP_S * SECOND // 2)
    with pytest.raises(
        ServingError, match=r"'m_0' is still warming up after 5 s; if it needs longer, raise --model-lo"
    ):
        await bench.starting
    assert bench.made[0].stopped


async def test_one_that_dies_idle_before_it_is_warm_fails_its_load():
    bench = Bench(warm_up=2)
    await settle()
    bench.made[0].load()
    await settle()
    bench.made[0].finish()
    bench.made[0].die()
    with pytest.raises(ServingError, match="m_0 died"):
        await bench.starting
    assert bench.listener.events == []


async def test_one_that_dies_warming_up_again_is_retried_after_longer():
    bench = Bench(warm_up=1)
    await settle()
    bench.made[0].load()
    await settle()
    bench.made[0].finish()
    await bench.starting
    bench.made[0].die()
    assert bench.group.lost is None
    for attempt, pause in enumerate([0.2, 0.4, 0.8], 1):
        await bench.clock.pass_time(round(pause * SECOND) - 1)
        assert len(bench.made) == attempt
        await bench.clock.pass_time(1)
        assert len(bench.made) == attempt + 1
        bench.made[-1].load()
        await settle()
        bench.made[-1].die()
        await settle()
        assert bench.made[-1].stopped
        assert bench.group.lost is not None
    assert bench.listener.events == ["1 added", "1 died", "lost", "lost", "lost"]
    await bench.clock.pass_time(2 * SECOND)
    bench.made[-1].load()
    await settle()
    bench.made[-1].finish()
    await settle()
    assert bench.listener.events[-1] == "2 added"
    assert bench.group.lost is None


async def test_a_cold_model_is_no_model():
    bench = Bench(warm_up=1)
    await settle()
    bench.made[0].load()
    await settle()
    bench.made[0].fail(invalid("cold"))
    with pytest.raises(ServingError, match="cold"):
        await bench.starting
    assert bench.made[0].stopped


async def started(instances: int = 1, warm_up: int = 0) -> Bench:
    """Return a group that serves."""
    bench = Bench(instances, warm_up)
    await settle()
    for instance in bench.made:
        instance.load()
    await settle()
    return bench


async def one_more_of_two() -> tuple[Bench, asyncio.Task[list[Slot]]]:
    """Return a group that serves and loads two instances more, of which one is loaded."""
    bench = await started()
    await bench.starting
    loading = asyncio.create_task(bench.group.load([bench.factory] * 2))
    await settle()
    bench.made[1].load()
    await settle()
    return bench, loading


class Heard:
    """Listens to one batch."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def answered(self, *_: object) -> None:
        self.events.append("answered")

    def failed(self, error: ServingError) -> None:
        """Do nothing."""

    def free(self) -> None:
        """Do nothing."""

    def respond(self, index: int, response: InferResponse) -> None:
        self.events.append("final" if response.final else "partial")

    def done(self, *_: object) -> None:
        """Do nothing."""


async def test_more_take_batches_only_once_all_are_warm_and_it_is_reported():
    bench = await started(warm_up=1)
    bench.made[0].finish()
    await bench.starting
    loading = asyncio.create_task(bench.group.load([bench.factory] * 2))
    await settle()
    bench.made[1].load()
    bench.made[2].load()
    for instance in bench.made[1:]:
        await settle()
        assert not loading.done()
        instance.finish()
    slots = await loading
    assert bench.listener.events == ["1 added"]
    assert bench.group.swap(slots, []) == []
    assert bench.listener.events == ["1 added", "2 added", "3 added"]


async def test_of_more_all_or_none_come_and_the_others_serve_on():
    bench, loading = await one_more_of_two()
    bench.made[2].load(invalid("no memory"))
    with pytest.raises(ServingError, match="no memory"):
        await loading
    assert [instance.stopped for instance in bench.made] == [False, True, False]
    assert bench.listener.events == ["1 added"]
    assert bench.group.has(1)


async def test_more_that_are_abandoned_leave_nothing():
    bench, loading = await one_more_of_two()
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert bench.made[1].stopped
    assert bench.group.has(1)


async def test_what_was_loaded_and_is_not_desired_is_released():
    bench = await started()
    await bench.starting
    loading = asyncio.create_task(bench.group.load([bench.factory]))
    await settle()
    bench.made[1].load()
    await bench.group.discard(await loading)
    assert bench.made[1].stopped
    assert bench.listener.events == ["1 added"]


async def test_one_that_died_before_it_was_to_serve_comes_back():
    bench = await started()
    await bench.starting
    loading = asyncio.create_task(bench.group.load([bench.factory]))
    await settle()
    bench.made[1].load()
    slots = await loading
    bench.made[1].die()
    bench.group.swap(slots, [])
    assert bench.listener.events == ["1 added"]
    await bench.clock.pass_time(SECOND)
    bench.made[2].load()
    await settle()
    assert bench.listener.events == ["1 added", "2 added"]


async def test_one_that_goes_finishes_what_it_runs():
    bench = await started(2)
    await bench.starting
    heard = Heard()
    bench.made[1].run([ask("a"), ask("b")], heard)
    (gone,) = bench.group.swap([], bench.group.slots[1:])
    assert bench.listener.events[-1] == "2 retired"
    assert not bench.group.has(2)
    await settle()
    assert not bench.made[1].stopped
    bench.made[1].finish()
    await gone
    assert heard.events == ["answered"]
    assert bench.made[1].stopped
    assert len(bench.group.slots) == 1


async def test_one_that_goes_answers_to_the_last_response():
    bench = await started(2)
    await bench.starting
    heard = Heard()
    bench.made[1].run([ask("a")], heard)
    (gone,) = bench.group.swap([], bench.group.slots[1:])
    bench.made[1].respond(final=False)
    bench.made[1].free()
    await settle()
    assert gone.done()
    assert heard.events[0] == "partial"


async def test_an_idle_one_goes_at_once_and_does_not_come_back():
    bench = await started(2)
    await bench.starting
    await asyncio.gather(*bench.group.swap([], bench.group.slots[1:]))
    assert bench.made[1].stopped
    bench.made[1].die()
    await bench.clock.pass_time(100 * SECOND)
    assert len(bench.made) == 2
    assert bench.listener.events == ["1 added", "2 added", "2 retired"]


async def test_one_that_was_lost_and_goes_does_not_come_back():
    bench = await started(2)
    await bench.starting
    bench.made[1].die()
    assert [bench.group.ready(slot) for slot in bench.group.slots] == [True, False]
    assert bench.group.swap([], bench.group.slots[1:]) == []
    await bench.clock.pass_time(100 * SECOND)
    assert len(bench.made) == 2


async def test_the_end_does_not_wait_for_one_that_goes_and_does_not_finish():
    bench = await started(2)
    await bench.starting
    heard = Heard()
    bench.made[1].run([ask("a")], heard)
    (gone,) = bench.group.swap([], bench.group.slots[1:])
    await bench.group.stop(1.0)
    assert gone.done()
    assert heard.events == ["final"], "it is answered all the same"
    assert all(instance.stopped for instance in bench.made)
