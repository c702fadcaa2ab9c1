"""What one instance asks of the server; what its engine tells of itself stays with the version's counters."""

from argosy_runtime.backends.contract import EngineState, ServerCall
from argosy_runtime.execution.calls import ServerCalls, Value
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.telemetry.engines import EngineStatistics


class InstanceCalls:
    """`ServerCalls` of the instance of this name."""

    def __init__(self, calls: ServerCalls, instance: str, engines: EngineStatistics) -> None:
        self._calls = calls
        self._instance = instance
        self._engines = engines

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        return self._calls.infer(request, decoupled, deliver)

    async def do(self, what: ServerCall, owner: int) -> Value:
        if isinstance(what, EngineState):
            self._engines.update(self._instance, what)
            return None
        return await self._calls.do(what, owner)

    def forget(self, owner: int) -> None:
        self._calls.forget(owner)
