"""The whole way in one thread: the model's process waits for a frame, and gets what the server makes meanwhile.

The instance is never idle: while it runs one batch, the next one is queued, as in a server that has enough to do.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from benchmarks.comparison.load import MODELS

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.execution.process import worker
from argosy_runtime.execution.process.wire.control import Load, SpecBody, Stop, control_frame
from argosy_runtime.repository.options import ControlMode, RepositoryOptions
from argosy_runtime.repository.serving import instances

from .clients import Clients, Loop, clients
from .seams import Execute, LocalInstance, TracedPlane
from .trace import FRAME_IN, FRONT_OUT, MODEL_IN, OWN, Trace, least


class Line:
    """The socket of the model's process. To be read from is its chance to do all that is not the model's process."""

    def __init__(self, instance: LocalInstance, groups: Sequence[Clients], loop: Loop, trace: Trace) -> None:
        self._to_model = instance.transport.written
        self._connection = instance.connection
        self._to_model.append(b"".join(control_frame(Load(SpecBody.of(instance.spec)))))
        self._from_model: list[bytes] = []
        self.sendall = self._from_model.append
        self._groups = groups
        self._loop = loop
        self._trace = trace
        self._turns = 0
        self.at_turn: Callable[[int], bool] = lambda turn: True

    def recv_into(self, buffer: memoryview, size: int = 0, flags: int = 0) -> int:
        if flags:
            raise BlockingIOError
        self._trace.enter(OWN)
        while not self._to_model:
            self._turn()
        frame = self._to_model.pop(0)
        buffer[: len(frame)] = frame
        self._trace.enter(MODEL_IN)
        return len(frame)

    def _turn(self) -> None:
        """Let a group of clients send, and answer the batch that has run, upon which the next is handed over."""
        going_on = self.at_turn(self._turns)
        if going_on:
            # The first is alone, so that a batch is running when the first whole group sends.
            self._groups[1 + self._turns % 2 if self._turns else 0].send()
        elif not self._from_model:
            self._to_model.append(b"".join(control_frame(Stop())))
        self._turns += 1
        if self._from_model:
            self._answer(self._from_model.pop(0))

    def _answer(self, frame: bytes) -> None:
        buffer = self._connection.get_buffer(-1)
        buffer[: len(frame)] = frame
        self._trace.enter(FRAME_IN)
        self._connection.buffer_updated(len(frame))
        self._trace.enter(FRONT_OUT)
        self._loop.run()
        self._trace.enter(OWN)


class Repeats:
    """When a repeat ends, and what it has measured. The first is not counted."""

    def __init__(self, trace: Trace, batch: int, turns: int, count: int) -> None:
        self._trace = trace
        self._batch = batch
        self._turns = turns
        self._count = count
        self._visit_ns = min(trace.visit_ns() for _ in range(10))
        self.rows: list[list[float]] = []

    def at_turn(self, turn: int) -> bool:
        """Return whether another turn follows after so many."""
        if len(self.rows) == self._count:
            return False
        if turn and turn % self._turns == 0:
            if turn > self._turns:
                self.rows.append(self._trace.microseconds(self._turns * self._batch, self._visit_ns))
            self._trace.reset()
        return len(self.rows) < self._count


async def measure(protocol: str, batch: int, turns: int, repeats: int) -> list[float]:
    """Return the microseconds a request of every stage, in batches of so many requests; `turns` batches a repeat."""
    trace, loop = Trace(), Loop()
    plane, instance = await serving(trace)
    groups = clients(protocol, (1, batch, batch), TracedPlane(plane, trace), trace, loop)
    line, recorder = Line(instance, groups, loop, trace), Repeats(trace, batch, turns, repeats)
    line.at_turn = recorder.at_turn
    gc.disable()
    with patch.object(worker, "execute", Execute(trace)):
        worker.Worker(line).main()  # type: ignore[arg-type]  # a stand-in for the pipe
    gc.enable()
    await plane.close(1.0)
    return least(recorder.rows)


async def serving(trace: Trace) -> tuple[DataPlane, LocalInstance]:
    """Return a data plane that serves `benchmarks/models/identity`, and its one instance."""
    made: list[LocalInstance] = []

    def instance(*arguments: Any) -> LocalInstance:
        made.append(LocalInstance(trace, *arguments))
        return made[-1]

    plane = DataPlane(RepositoryOptions((MODELS,), ControlMode.EXPLICIT, ("identity",)), {})
    with patch.object(instances, "ProcessInstance", instance):
        failures = await plane.start()
    if failures:
        raise RuntimeError(str(failures))
    return plane, made[0]
