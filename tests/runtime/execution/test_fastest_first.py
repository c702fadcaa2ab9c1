"""The order in which instances get batches, in virtual time: GPUs before the CPU, then the longest free."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.execution.fakes import US, Client, Factory, FakeInstance, VirtualClock, ask, settle
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.telemetry.statistics import ModelStatistics

RANKS = st.lists(st.integers(0, 1), min_size=1, max_size=4)
# Requests that come at once, microseconds that pass, and which of the busy instances is done then, if any is.
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 5)), max_size=30)


@pytest.mark.parametrize(("kind", "rank"), [("KIND_GPU", 0), ("KIND_MODEL", 0), ("KIND_CPU", 1)])
def test_the_cpu_comes_last(tmp_path, kind, rank):
    assert InstanceSpec(ModelConfig(), 1, tmp_path, tmp_path, "m_0", kind, 0).rank == rank


@given(RANKS, EVENTS)
def test_a_batch_goes_to_the_fastest_free_instance(ranks, events):
    asyncio.run(play(ranks, events))


async def play(ranks: list[int], events: list[tuple[int, int, int]]) -> None:
    """Let the events happen, each batch being one request, and look where it went."""
    clock, factories = VirtualClock(), [Factory(rank=rank) for rank in ranks]
    rules = BatchingRules(merge=False)
    dispatcher = Dispatcher("m", 1, DynamicBatcher(rules), factories, ModelStatistics(), clock)
    starting = asyncio.create_task(dispatcher.start())
    await settle()
    instances = [made for factory in factories for made in factory.made]
    for instance in instances:
        instance.load()
    await starting
    free = sorted(instances, key=lambda instance: instance.rank)
    waiting, clients = 0, []

    def dispatched() -> None:
        nonlocal waiting
        while waiting and free:
            expected = free.pop(0)
            waiting -= 1
            assert len(expected.batches) == 1
        assert all(not instance.batches for instance in free)

    for arrivals, us, done in events:
        for _ in range(arrivals):
            clients.append(client := Client())
            dispatcher.submit(ask(), 1, None, client.deliver)
            waiting += 1
            dispatched()
        await clock.pass_time(us * US)
        busy = [instance for instance in instances if instance.batches]
        if done < len(busy):
            busy[done].finish()
            free.append(busy[done])
            free.sort(key=rank_of)
            dispatched()
    while busy := [instance for instance in instances if instance.batches]:
        busy[0].finish()
    assert all(client.over for client in clients)
    await dispatcher.close(1.0)


def rank_of(instance: FakeInstance) -> int:
    """Return an instance's rank."""
    return instance.rank
