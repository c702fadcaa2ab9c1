"""The sleep of a version's instances, which a test has in its hand."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.runtime.execution.conftest import cancelled_tasks
from tests.runtime.execution.fakes import SECOND, Client, FakeInstance, VirtualClock, ask, settle

from argosy_runtime.backends.engines.commands import Command, Sleep, Wake
from argosy_runtime.errors import internal, invalid, unavailable, unsupported
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.instance import Instance
from argosy_runtime.execution.instance_group import NewInstance, OnDeath
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.repository.serving import sleeping
from argosy_runtime.repository.serving.instances import VersionInstances
from argosy_runtime.repository.serving.sleeping import InstanceSleep
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.telemetry.statistics import ModelStatistics

__all__ = ["cancelled_tasks"]

pytestmark = pytest.mark.usefixtures("cancelled_tasks")
HANGS = "hangs"


class Engine(FakeInstance):
    """An instance that carries out commands at once, unless there is another outcome for one."""

    def __init__(self, name: str, on_death: OnDeath, outcomes: dict[type, Exception | str]) -> None:
        super().__init__(name, on_death)
        self.commands: list[Command] = []
        self.grace: float | None = None
        self._outcomes = outcomes

    async def manage(self, command: Command) -> None:
        self.commands.append(command)
        outcome = self._outcomes.get(type(command))
        if outcome == HANGS:
            await asyncio.Event().wait()
        if isinstance(outcome, Exception):
            raise outcome

    async def stop(self, grace: float) -> None:
        self.grace = grace
        await super().stop(grace)


class Bench:
    """A version with so many instances. `outcomes`: what comes of commands, unless they are carried out."""

    def __init__(self, count: int = 1, outcomes: dict[type, Exception | str] | None = None) -> None:
        self.outcomes = outcomes or {}
        self.made: list[Engine] = []
        self.updated: list[str] = []
        self.clock = VirtualClock()
        self.placements = [InstancePlacement(f"m_{number}", "KIND_GPU", 0, "") for number in range(count)]
        batcher = DynamicBatcher(BatchingRules())
        makers = [self.make] * count
        self.dispatcher = Dispatcher("m", 1, batcher, makers, ModelStatistics(), self.clock)
        self.sleep = InstanceSleep(
            "m",
            VersionInstances(self.placements, self.dispatcher.group),
            self.dispatcher,
            self.makers,
            lambda: self.update,
            timeout=30,
        )

    def make(self, on_death: OnDeath) -> Engine:
        self.made.append(Engine(f"m_{len(self.made)}", on_death, self.outcomes))
        return self.made[-1]

    def makers(self) -> Sequence[tuple[InstancePlacement, NewInstance]]:
        return [(placement, self.make) for placement in self.placements]

    async def update(self, instance: Instance) -> None:
        self.updated.append(instance.name)

    async def loaded(self, *instances: int) -> None:
        """Let these instances load, or all that do."""
        await settle()
        for engine in [self.made[number] for number in instances] or self.made:
            if engine.loading:
                engine.load()
        await settle()

    def submit(self) -> Client:
        """Send a request as a served version does."""
        client = Client()
        if self.sleep.asleep:
            self.sleep.end_soon()
        client.submission = self.dispatcher.submit(ask(), 1, None, client.deliver)
        return client


async def awake(count: int = 1, **outcomes: Exception | str) -> Bench:
    """Return a version whose instances serve. `outcomes` are by the command's name."""
    kinds = {"Sleep": Sleep, "Wake": Wake}
    bench = Bench(count, {kinds[name]: outcome for name, outcome in outcomes.items()})
    starting = asyncio.create_task(bench.dispatcher.start())
    await bench.loaded()
    await starting
    return bench


async def asleep(count: int = 1, **outcomes: Exception | str) -> Bench:
    """Return a version that sleeps."""
    bench = await awake(count, **outcomes)
    await bench.sleep.begin()
    assert bench.sleep.asleep
    assert not bench.dispatcher.group.takes_batches
    return bench


async def test_an_instance_sleeps_loaded_and_is_woken_by_a_request() -> None:
    bench = await asleep()
    (engine,) = bench.made
    assert (bench.sleep.names, engine.holds, engine.batches) == (["m_0"], True, [])
    client = bench.submit()
    await settle()
    assert [type(command) for command in engine.commands] == [Sleep, Wake]
    assert (bench.sleep.asleep, bench.updated) == (False, ["m_0"])
    engine.finish()
    assert not client.error
    assert client.over
    assert bench.made == [engine]


async def test_no_instance_sleeps_while_a_request_is_open() -> None:
    bench = await awake()
    bench.submit()
    await bench.sleep.begin()
    assert not bench.sleep.asleep
    bench.made[0].finish()
    await bench.sleep.begin()
    assert bench.sleep.asleep


async def test_a_request_that_comes_meanwhile_waits_for_the_sleep_and_ends_it() -> None:
    bench = await awake()
    beginning = asyncio.create_task(bench.sleep.begin())
    await asyncio.sleep(0)
    client = bench.submit()
    assert bench.made[0].batches == []
    await beginning
    await settle()
    assert [type(command) for command in bench.made[0].commands] == [Sleep, Wake]
    bench.made[0].finish()
    assert client.over


@pytest.mark.parametrize(
    "outcomes",
    [
        {"Sleep": unsupported("cannot")},
        {"Sleep": internal("no memory")},
        {"Sleep": HANGS},
        {"Sleep": ValueError("no such thing")},
        {"Wake": internal("no memory")},
        {"Wake": ValueError("no such thing")},
    ],
)
async def test_an_instance_that_cannot_is_released_and_loaded_again(
    outcomes: dict[str, Exception | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleeping, "_FALL_SECONDS", 0.0 if HANGS in outcomes.values() else 60.0)
    bench = await asleep(**outcomes)
    assert bench.made[0].stopped == ("Sleep" in outcomes)
    client = bench.submit()
    await bench.loaded()
    assert (bench.made[0].stopped, len(bench.made), bench.sleep.asleep) == (True, 2, False)
    bench.made[1].finish()
    assert client.over
    assert not client.error


async def test_an_instance_that_dies_asleep_is_noticed_and_loaded_by_the_next_request() -> None:
    bench = await asleep()
    bench.made[0].die()
    assert bench.sleep.names == []
    assert bench.dispatcher.ready
    await bench.clock.pass_time(60 * SECOND)
    assert len(bench.made) == 1
    client = bench.submit()
    await bench.loaded()
    bench.made[1].finish()
    assert client.over
    assert not client.error


async def test_one_of_two_serves_while_the_other_is_started_again() -> None:
    bench = await asleep(2)
    bench.made[0].die()
    client = bench.submit()
    await settle()
    bench.made[1].finish()
    assert client.over
    await bench.clock.pass_time(5 * SECOND)
    await bench.loaded()
    assert bench.dispatcher.instances == ["m_1", "m_2"]


async def test_an_instance_that_was_released_is_started_again_next_to_one_that_slept() -> None:
    bench = await awake(2)
    bench.made[0]._outcomes = {Sleep: internal("no memory")}
    await bench.sleep.begin()
    assert bench.sleep.names == ["m_1"]
    await bench.sleep.end()
    await bench.clock.pass_time(5 * SECOND)
    await bench.loaded()
    assert bench.dispatcher.instances == ["m_1", "m_2"]


async def test_requests_are_refused_if_nothing_can_be_woken_or_loaded() -> None:
    bench = await asleep(Wake=internal("no memory"))
    client = bench.submit()
    await settle()
    bench.made[1].load(invalid("no weights"))
    await settle()
    assert "cannot be woken: no weights" in client.error
    assert bench.sleep.asleep
    client = bench.submit()
    await bench.loaded()
    bench.made[2].finish()
    assert not client.error


async def test_an_instance_that_does_not_fall_asleep_delays_no_unload() -> None:
    bench = await awake(Sleep=HANGS)
    beginning = asyncio.create_task(bench.sleep.begin())
    await settle()
    assert bench.made[0].commands == [Sleep()]
    closing = asyncio.create_task(bench.sleep.close(5))
    await settle()
    assert closing.done()
    assert bench.made[0].grace == 5
    await beginning


async def test_what_sleeps_is_released_with_its_version() -> None:
    bench = await asleep(2)
    await bench.sleep.close(0)
    assert [engine.stopped for engine in bench.made] == [True, True]
    assert bench.sleep.end_soon() is None


@pytest.mark.parametrize("outcomes", [{}, {"Wake": HANGS}])
async def test_a_version_that_is_unloaded_while_it_wakes_releases_everything(outcomes: dict[str, str]) -> None:
    bench = await awake(**outcomes)
    beginning = asyncio.create_task(bench.sleep.begin())
    await asyncio.sleep(0)
    client = bench.submit()
    if outcomes:
        await settle()
    await bench.sleep.close(0)
    await bench.dispatcher.close(0)
    await beginning
    assert bench.made[0].stopped
    assert "was unloaded" in client.error
    assert len(bench.made) == 1


async def test_instances_of_another_configuration_replace_those_that_sleep() -> None:
    bench = await asleep()
    (slot,) = await _load(bench)
    bench.sleep._instances.swap([(bench.placements[0], slot)], [])
    bench.dispatcher.group.swap([slot], [])
    bench.sleep.replaced()
    client = bench.submit()
    await settle()
    assert bench.made[0].stopped
    bench.made[1].finish()
    assert client.over
    await bench.sleep.begin()
    assert bench.sleep.names == ["m_1"]


async def test_instances_that_wake_give_way_to_those_of_another_configuration() -> None:
    bench = await asleep(Wake=HANGS)
    bench.sleep.end_soon()
    (slot,) = await _load(bench)
    bench.sleep._instances.swap([(bench.placements[0], slot)], [])
    bench.dispatcher.group.swap([slot], [])
    bench.sleep.replaced()
    await settle()
    await bench.sleep.begin()
    assert bench.dispatcher.instances == ["m_1"], "no instance sleeps while others give way"
    bench.made[0].die()
    await bench.sleep.close(0)
    assert bench.dispatcher.instances == ["m_1"]


async def test_an_engine_that_is_unavailable_is_no_loss() -> None:
    bench = await asleep(Wake=unavailable("its process has ended"))
    client = bench.submit()
    await bench.loaded()
    bench.made[1].finish()
    assert not client.error


async def _load(bench: Bench) -> list:
    loading = asyncio.create_task(bench.dispatcher.group.load([bench.make]))
    await bench.loaded()
    return await loading
