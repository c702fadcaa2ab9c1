"""Whatever instances and clients of sequences do: every request is answered once, and nothing keeps a model open."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.properties import examples
from tests.runtime.execution.fakes import SECOND, US, Client, Factory, FakeInstance, VirtualClock, ask, settle
from tests.runtime.scheduling.sequences.bench import IDLE, config

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.execution.dispatching.sequence_dispatcher import SequenceDispatcher
from argosy_runtime.messages import RESCHEDULED, InferResponse
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler
from argosy_runtime.telemetry.statistics import ModelStatistics

STRATEGIES = ["direct {}", "oldest { max_candidate_sequences: 2 max_queue_delay_microseconds: 100 }"]


class SequencesMachine(RuleBasedStateMachine):
    """A dispatcher of sequences with instances that answer, die, leave and come."""

    @initialize(strategy=st.sampled_from(STRATEGIES), instances=st.integers(1, 2), iterative=st.booleans())
    def start(self, strategy: str, instances: int, iterative: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients: list[Client] = []
        self.statistics = ModelStatistics()
        self.changes: list[asyncio.Task[None]] = []

        async def begin() -> None:
            self.clock = VirtualClock()
            self.factory = Factory(decoupled=True)
            scheduler = SequenceScheduler(config(strategy, 2, "iterative_sequence: true" if iterative else ""), {})
            makers = [self.factory] * instances
            self.dispatcher = SequenceDispatcher("m", 1, scheduler, makers, self.statistics, self.clock)
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
        return [one for one in self.factory.made if not (one.dead or one.stopped or one.loading)]

    def _working(self) -> list[FakeInstance]:
        return [one for one in self._living() if one.batches]

    @rule(sequence=st.integers(0, 4), start=st.booleans(), end=st.booleans(), timeout=st.sampled_from([0, 200]))
    def submit(self, sequence: int, start: bool, end: bool, timeout: int) -> None:
        client = Client()
        self.clients.append(client)
        request = ask(
            str(len(self.clients)), sequence_id=sequence, sequence_start=start, sequence_end=end, timeout_us=timeout
        )

        def act() -> None:
            try:
                client.submission = self.dispatcher.submit(request, 1, None, client.deliver)
            except ServingError as error:
                client.deliver(InferResponse(error=error))

        self._run(act)

    @precondition(lambda self: any(client.submission is not None for client in self.clients))
    @rule(data=st.data(), what=st.sampled_from(["cancel", "pause", "resume"]))
    def client_acts(self, data: st.DataObject, what: str) -> None:
        client = data.draw(st.sampled_from([one for one in self.clients if one.submission is not None]))
        self._run(getattr(client.submission, what))

    @precondition(lambda self: self._working())
    @rule(data=st.data(), fails=st.booleans())
    def finish(self, data: st.DataObject, fails: bool) -> None:
        instance = data.draw(st.sampled_from(self._working()))
        self._run(lambda: instance.fail(internal("failed")) if fails else instance.finish())

    @precondition(lambda self: self._working())
    @rule(data=st.data(), what=st.sampled_from(["answer", "again", "free"]))
    def respond(self, data: st.DataObject, what: str) -> None:
        instance = data.draw(st.sampled_from(self._working()))
        index = data.draw(st.integers(0, len(instance.batches[0][1]) - 1))

        def act() -> None:
            if what == "free":
                instance.free()
                instance.batches.pop(0)
            else:
                instance.respond(index, response=RESCHEDULED if what == "again" else None)

        self._run(act)

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self._run(data.draw(st.sampled_from(self._living())).die)

    @rule()
    def load(self) -> None:
        for instance in self.factory.made:
            if instance.loading and not (instance.dead or instance.stopped):
                self._run(instance.load)

    @rule()
    def grow(self) -> None:
        async def change() -> None:
            group = self.dispatcher.group
            group.swap(await group.load([self.factory]), [])

        self._run(lambda: self.changes.append(asyncio.get_running_loop().create_task(change())))

    @precondition(lambda self: hasattr(self, "dispatcher") and len(self.dispatcher.group.slots) > 1)
    @rule(data=st.data())
    def shrink(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.dispatcher.group.slots))
        self._run(lambda: self.dispatcher.group.swap([], [gone]))

    @rule(ns=st.sampled_from([100 * US, IDLE]))
    def pass_time(self, ns: int) -> None:
        self.loop.run_until_complete(self.clock.pass_time(ns))

    def teardown(self) -> None:
        """Close the model while its instances answer: every client has its last response then."""
        if not hasattr(self, "dispatcher"):
            return
        closing = self.loop.create_task(self.dispatcher.close(20.0))
        for _ in range(400):
            self.load()
            for instance in self._working():
                self._run(instance.finish)
            self.pass_time(IDLE)
            if closing.done():
                break
        # A request that a decoupled instance has not answered is answered when the time to close is over.
        self.pass_time(30 * SECOND)
        self._run(lambda: None)
        closing.result()
        assert all(client.over for client in self.clients)
        assert self.statistics.pending == 0
        assert not self.dispatcher.owes
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(settle())
        self.loop.close()


TestSequences = SequencesMachine.TestCase
TestSequences.settings = examples(25, stateful_step_count=25)
