"""Dispatchers at one rate limiter, in virtual time: which instance runs when, and nothing is left behind."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.execution.fakes import US, Client, Factory, FakeInstance, VirtualClock, ask, settle
from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup, ModelRateLimiter

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.dispatching.limited_instances import LimitedInstances
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.limits.rate_limiter import RateLimiter
from argosy_runtime.scheduling.limits.resources import ResourceLimit, Resources
from argosy_runtime.telemetry.statistics import ModelStatistics

pytestmark = pytest.mark.usefixtures("cancelled_tasks")


def placement(name: str, count: int, priority: int = 0) -> InstancePlacement:
    """Return an instance that takes so much of R."""
    limiter = ModelRateLimiter(priority=priority, resources=[ModelRateLimiter.Resource(name="R", count=count)])
    group = ModelInstanceGroup(rate_limiter=limiter).SerializeToString()
    return InstancePlacement(name, "KIND_CPU", 0, "cpu", group=group)


class Model:
    """A dispatcher at the limiter, and its instances."""

    def __init__(self, limiter: RateLimiter, clock: VirtualClock, placements: list[InstancePlacement], **rules) -> None:
        self.placed = LimitedInstances(limiter)
        self.placed.follow(placements)
        self.made: list[FakeInstance] = []
        makers = [self._maker(placement) for placement in placements]
        scheduler = DynamicBatcher(BatchingRules(**{"max_batch_size": 8, "merge": False, **rules}))
        self.clock = clock
        self.dispatcher = Dispatcher("m", 1, scheduler, makers, ModelStatistics(), clock)
        self.dispatcher.limit(limiter, self.placed)

    def _maker(self, placement: InstancePlacement):
        def make(on_death):
            instance = Factory()(on_death)
            instance.placement = placement
            self.made.append(instance)
            return instance

        return make

    async def start(self) -> "Model":
        starting = asyncio.create_task(self.dispatcher.start())
        await settle()
        for instance in self.made:
            instance.load()
        await starting
        return self

    def ask(self, name: str = "") -> Client:
        client = Client()
        client.submission = self.dispatcher.submit(ask(name, 1), 1, None, client.deliver)
        return client

    @property
    def running(self) -> list[FakeInstance]:
        return [instance for instance in self.made if instance.batches]


async def models(*counts: int, available: int = 0, **rules: object) -> list[Model]:
    """Return started models of one instance each, which take so much of R."""
    limiter = RateLimiter(Resources([ResourceLimit("R", available)] if available else []))
    clock = VirtualClock()
    return [await Model(limiter, clock, [placement(f"i{n}", count)], **rules).start() for n, count in enumerate(counts)]


async def test_models_take_turns():
    a, b = await models(1, 1)
    clients = [a.ask("a1"), b.ask("b1"), a.ask("a2"), b.ask("b2")]
    order = []
    for _ in clients:
        (running,) = [*a.running, *b.running]
        order += running.ids()[0]
        running.finish()
    assert order == ["a1", "b1", "a2", "b2"]
    assert all(client.over for client in clients)


async def test_a_batch_is_made_when_it_may_run():
    a, b = await models(1, 1, merge=True)
    a.ask("a")
    for name in ("b1", "b2", "b3"):
        b.ask(name)
    a.made[0].finish()
    assert b.made[0].ids() == [["b1", "b2", "b3"]]


async def test_a_request_that_is_cancelled_while_it_waits_is_not_run():
    a, b = await models(1, 1)
    a.ask("a")
    gone, stays = b.ask("gone"), b.ask("stays")
    gone.submission.cancel()
    assert gone.responses[-1].error.kind is ErrorKind.CANCELLED
    a.made[0].finish()
    assert b.made[0].ids() == [["stays"]]
    b.made[0].finish()
    assert stays.over


async def test_a_model_that_waits_for_a_fuller_batch_keeps_no_resource():
    a, b = await models(1, 1, merge=True, delay_ns=100 * US)
    a.ask("a")
    b.ask("b")
    assert a.running == b.running == []
    await a.clock.pass_time(100 * US)
    assert (len(a.running), len(b.running)) == (1, 0)
    a.made[0].finish()
    assert len(b.running) == 1


async def test_two_instances_of_one_model_and_a_delay_come_to_rest():
    limiter, clock = RateLimiter(Resources([])), VirtualClock()
    placements = [placement("x", 1), placement("y", 1)]
    model = await Model(limiter, clock, placements, merge=True, delay_ns=100 * US).start()
    model.ask("a")
    assert model.running == []
    await clock.pass_time(100 * US)
    assert len(model.running) == 1


async def test_an_instance_that_dies_gives_back():
    a, b = await models(1, 1)
    failed, waits = a.ask("a"), b.ask("b")
    a.made[0].die()
    await settle()
    assert failed.over
    assert b.made[0].ids() == [["b"]]
    b.made[0].finish()
    assert waits.over


async def test_an_unloaded_model_gives_back_what_it_waited_for():
    a, b, c = await models(2, 1, 1, available=2)
    a.ask("a")
    closing = b.ask("b")
    close = asyncio.create_task(b.dispatcher.close(0.0))
    await settle()
    await close
    b.placed.close()
    assert closing.over
    c.ask("c")
    a.made[0].finish()
    assert c.made[0].ids() == [["c"]]


def test_what_could_never_run_changes_nothing():
    placed = LimitedInstances(RateLimiter(Resources([ResourceLimit("R", 2)])))
    placed.follow([placement("a", 2)])
    instance = placed.of(placement("a", 2))
    with pytest.raises(ServingError, match="the minimum required count is 3"):
        placed.follow([placement("b", 1), placement("c", 3)])
    assert placed.of(placement("a", 2)) is instance


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.sampled_from("aafc"), st.integers(0, 7)), max_size=40),
)
def test_every_request_is_answered_and_no_resource_is_used_twice(counts, steps):
    async def play() -> None:
        present = await models(*counts, available=3)
        clients: list[Client] = []
        for what, number in steps:
            model = present[number % len(present)]
            if what == "a":
                clients.append(model.ask(str(number)))
            elif what == "f" and model.running:
                model.made[0].finish()
            elif what == "c" and clients:
                clients[number % len(clients)].submission.cancel()
            used = Counter()
            for count, one in zip(counts, present, strict=True):
                used["R"] += count * len(one.running)
            assert used["R"] <= 3
        for _ in range(len(clients) + 1):
            for model in present:
                if model.running:
                    model.made[0].finish()
        assert all(client.over for client in clients)

    asyncio.run(play())
