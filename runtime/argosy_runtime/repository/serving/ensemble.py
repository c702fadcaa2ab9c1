"""One version of an ensemble in service: its requests are requests to other models of the server."""

from collections.abc import Iterable, Mapping

from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.ensembles import EnsembleRunner
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.telemetry.statistics import ModelStatistics

from .delegating import CompositeVersion
from .reshaping import OutputShapes
from .version import ServedVersion


class ServedEnsemble(CompositeVersion):
    """A version of an ensemble. It has no resources of its own: its steps are versions of other models of the server.

    `models` are those, by name and version as the steps name them. A request uses the ones that it began with.
    """

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        steps: EnsembleSteps,
        models: Mapping[tuple[str, str], ServedVersion],
        statistics: ModelStatistics,
    ) -> None:
        super().__init__(prepared, version, prepared.config, statistics)
        self._admission = Admission(self.config)
        self._output_shapes = OutputShapes(self.config)
        self._models = models
        self._by_step = [models[step.model, step.version] for step in steps.steps]
        self._runner = EnsembleRunner(steps, version, self, statistics, LoopClock())

    def _parts(self) -> Iterable[ServedVersion]:
        return self._models.values()

    @property
    def ready(self) -> bool:
        # Called with every request: a loop costs half of what a generator does.
        for model in self._models.values():  # noqa: SIM110
            if not model.ready:
                return False
        return True

    @property
    def takes_batches(self) -> bool:
        """True if an instance of every step can take requests now, or is woken by them."""
        return all(model.takes_batches or model.asleep for model in self._models.values())

    @property
    def asleep(self) -> bool:
        """False: requests wake its steps."""
        return False

    @property
    def problem(self) -> str:
        return "; ".join(model.problem for model in self._models.values() if not model.ready)

    @property
    def caution(self) -> str:
        return "; ".join(caution for model in self._models.values() if (caution := model.caution))

    @property
    def running(self) -> int:
        return self._runner.running

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        admitted = self._admission.admit(request)
        request = admitted.seen_by_model(request)
        return self._runner.submit(request, admitted.size, self._output_shapes.before(deliver))

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        return self._by_step[index].submit(request, deliver)

    async def close(self, grace: float) -> None:
        """Release nothing: requests on their way hold the steps they need."""
