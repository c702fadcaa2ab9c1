"""Whatever dies, is cancelled, expires or fails: every request is answered once, by an instance that lives."""

import asyncio
from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties import examples
from tests.runtime.execution.fakes import US, Client, Factory, FakeInstance, VirtualClock, ask, settle

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.telemetry.statistics import ModelStatistics

POLICIES = st.builds(
    QueuePolicy,
    max_size=st.sampled_from([0, 3]),
    timeout_ns=st.sampled_from([0, 300 * US]),
    allow_override=st.booleans(),
    delay_on_timeout=st.booleans(),
)

ERRORS = [None, "", "CUDA error"]
"""Device errors of a batch's responses; None for a response without any error."""


class DispatcherMachine(RuleBasedStateMachine):
    """Clients, instances and the clock do what they like."""

    @initialize(
        instances=st.integers(1, 3),
        merge=st.booleans(),
        ordered=st.booleans(),
        decoupled=st.booleans(),
        delay=st.sampled_from([0, 100 * US]),
        policy=POLICIES,
    )
    def start(
        self, instances: int, merge: bool, ordered: bool, decoupled: bool, delay: int, policy: QueuePolicy
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients: list[Client] = []
        self.statistics = ModelStatistics()
        rules = BatchingRules(8, delay, merge=merge, policies=QueuePolicies(policy, {}, levels=2, default_level=2))
        self.decoupled = decoupled
        self.order = ResponseOrder() if ordered else None

        async def begin() -> None:
            self.clock = VirtualClock()
            self.factory = Factory(decoupled)
            self.batcher = DynamicBatcher(rules)
            self.changes: list[asyncio.Task[None]] = []
            self.dispatcher = Dispatcher(
                "m", 1, self.batcher, [self.factory] * instances, self.statistics, self.clock, self.order
            )
            starting = asyncio.create_task(self.dispatcher.start())
            await settle()
            for instance in self.factory.made:
                instance.load()
            await starting

        self.loop.run_until_complete(begin())

    def _run(self, act) -> None:
        async def acted() -> None:
            act()
            await settle()

        self.loop.run_until_complete(acted())

    def _living(self) -> list[FakeInstance]:
        return [instance for instance in self.factory.made if not (instance.dead or instance.stopped)]

    def _at_work(self) -> list[FakeInstance]:
        return [instance for instance in self._living() if instance.batches]

    @rule(rows=st.integers(1, 8), priority=st.integers(0, 2), timeout=st.sampled_from([0, 50]))
    def submit(self, rows: int, priority: int, timeout: int) -> None:
        client = Client()
        request = ask(str(len(self.clients)), rows, priority=priority, timeout_us=timeout)
        self.clients.append(client)

        def act() -> None:
            client.submission = self.dispatcher.submit(request, rows, None, client.deliver)

        self._run(act)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), what=st.sampled_from(["cancel", "pause", "resume"]))
    def client_acts(self, data: st.DataObject, what: str) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self._run(getattr(client.submission, what))

    @precondition(lambda self: self._at_work())
    @rule(data=st.data(), errors=st.lists(st.sampled_from(ERRORS), max_size=3))
    def finish(self, data: st.DataObject, errors: list[str | None]) -> None:
        instance = data.draw(st.sampled_from(self._at_work()))
        _, requests = instance.batches[0]
        made = [None if error is None else internal("x", device_error=error) for error in errors]
        self._run(lambda: instance.finish(*made[: len(requests)]))

    @precondition(lambda self: self._at_work())
    @rule(data=st.data(), device_error=st.sampled_from(["", "CUDA error"]))
    def fail(self, data: st.DataObject, device_error: str) -> None:
        instance = data.draw(st.sampled_from(self._at_work()))
        self._run(lambda: instance.fail(internal("failed", device_error=device_error)))

    @precondition(lambda self: self._at_work())
    @rule(data=st.data(), final=st.booleans())
    def respond(self, data: st.DataObject, final: bool) -> None:
        instance = data.draw(st.sampled_from(self._at_work()))
        _, requests = instance.batches[0]
        index = data.draw(st.integers(0, len(requests) - 1))
        self._run(lambda: instance.respond(index, final or not self.decoupled))

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def refuse_the_next(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self._living())).refuses = True

    @precondition(lambda self: [one for one in self._living() if not one.loading])
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        instance = data.draw(st.sampled_from([one for one in self._living() if not one.loading]))
        self._run(instance.die)

    @precondition(lambda self: [one for one in self._living() if one.loading])
    @rule(data=st.data(), error=st.booleans())
    def load(self, data: st.DataObject, error: bool) -> None:
        instance = data.draw(st.sampled_from([one for one in self._living() if one.loading]))
        instance.stopped = error
        self._run(lambda: instance.load(invalid("no") if error else None))

    @rule(more=st.integers(1, 2))
    def grow(self, more: int) -> None:
        async def change() -> None:
            group = self.dispatcher.group
            with suppress(ServingError):
                group.swap(await group.load([self.factory] * more), [])

        self._run(lambda: self.changes.append(asyncio.get_running_loop().create_task(change())))

    @precondition(lambda self: hasattr(self, "dispatcher") and len(self.dispatcher.group.slots) > 1)
    @rule(data=st.data())
    def shrink(self, data: st.DataObject) -> None:
        group = self.dispatcher.group
        gone = data.draw(st.sampled_from(group.slots))
        self._run(lambda: group.swap([], [gone]))

    @rule(most=st.sampled_from([1, 4, 8]), merge=st.booleans(), ordered=st.booleans(), policy=POLICIES)
    def follow(self, most: int, merge: bool, ordered: bool, policy: QueuePolicy) -> None:
        rules = BatchingRules(most, 50 * US, merge=merge, policies=QueuePolicies(policy, {}))
        order = ResponseOrder() if ordered else None

        def act() -> None:
            self.batcher.follow(rules)
            self.dispatcher.follow(order)

        self._run(act)

    @rule(ns=st.sampled_from([10 * US, 100 * US, 1_000 * US, 1_000_000 * US]))
    def pass_time(self, ns: int) -> None:
        self.loop.run_until_complete(self.clock.pass_time(ns))

    @invariant()
    def an_instance_runs_one_batch_at_a_time(self) -> None:
        if hasattr(self, "factory") and not self.decoupled:
            assert all(len(instance.batches) <= 1 for instance in self.factory.made)

    @invariant()
    def pending_requests_are_unanswered(self) -> None:
        if hasattr(self, "factory"):
            over = sum(client.over for client in self.clients)
            assert 0 <= self.statistics.pending <= len(self.clients) - over

    def teardown(self) -> None:
        if not hasattr(self, "factory"):
            return

        async def end() -> None:
            for change in self.changes:
                change.cancel()
            await asyncio.gather(*self.changes, return_exceptions=True)
            closing = asyncio.create_task(self.dispatcher.close(grace=1))
            await self.clock.pass_time(10_000_000 * US)
            await closing

        self.loop.run_until_complete(end())
        self.loop.close()
        assert all(client.over for client in self.clients), "everybody has an answer"
        counts = self.statistics.success.count + self.statistics.fail.count
        assert counts == len(self.clients)
        assert self.statistics.pending == 0
        assert not any(instance.holds for instance in self.factory.made), "nothing is left behind"


DispatcherMachine.TestCase.settings = examples(60, stateful_step_count=40)
TestDispatcher = DispatcherMachine.TestCase
