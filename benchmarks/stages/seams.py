"""Where the real objects meet: what stands between two of them enters the next one's stage."""

from collections.abc import Sequence
from typing import Any

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.engines.commands import Command
from argosy_runtime.dataplane import DataPlane
from argosy_runtime.execution.calls.server import ServerCalls
from argosy_runtime.execution.executing import execute
from argosy_runtime.execution.instance import Run, RunListener
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.messages import Deliver, InferRequest, Submission

from .clients import Transport
from .trace import ANSWERED, EXECUTE, FRAME_OUT, FRONT_OUT, MODEL_OUT, OWN, SUBMIT, Crossing, Trace


class TracedPlane:
    """The data plane, seen by front ends."""

    def __init__(self, plane: DataPlane, trace: Trace) -> None:
        self._plane = plane
        self._trace = trace

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        outer = self._trace.enter(OWN)
        crossing = Crossing(self._trace, FRONT_OUT, deliver)
        self._trace.enter(SUBMIT)
        submission = self._plane.submit(request, crossing, single)
        self._trace.enter(outer)
        return submission

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)


class _Listener:
    """See `RunListener`; whatever a batch without a fault does not need is missing."""

    def __init__(self, listener: RunListener, trace: Trace) -> None:
        self.answered = Crossing(trace, ANSWERED, listener.answered)


class LocalInstance:
    """A `ProcessInstance` whose process is in this one. It is given no process to start, but a transport."""

    def __init__(self, trace: Trace, spec: InstanceSpec, calls: ServerCalls, timeout: float, on_death: Any) -> None:
        self.spec = spec
        self.transport = Transport()
        self._trace = trace
        self._instance = ProcessInstance(spec, calls, timeout, on_death)
        self.rank = self._instance.rank
        self.connection = self._instance._connection
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]  # a stand-in for a socket

    async def start(self) -> None:
        """Do nothing: the worker loads the model when it runs."""

    def run(self, requests: Sequence[InferRequest], listener: RunListener) -> Run:
        outer = self._trace.enter(OWN)
        traced = _Listener(listener, self._trace)
        self._trace.enter(FRAME_OUT)
        run = self._instance.run(requests, traced)  # type: ignore[arg-type]  # it lacks what only faults need
        self._trace.enter(outer)
        return run

    async def manage(self, command: Command) -> None:
        """Have the model carry out a command."""
        await self._instance.manage(command)

    async def stop(self, grace: float) -> None:
        """Do nothing."""


class Execute:
    """Stands for `executing.execute` in the worker: what comes before is reading, what comes behind is writing."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __call__(self, *arguments: Any) -> Any:
        self._trace.enter(EXECUTE)
        responses = execute(*arguments)
        self._trace.enter(MODEL_OUT)
        return responses
