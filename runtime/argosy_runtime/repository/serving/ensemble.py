"""One version of an ensemble in service: its requests are requests to other models of the server."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.ensembles import EnsembleRunner
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.telemetry.statistics import ModelStatistics

from .delegating import CompositeVersion
from .reshaping import OutputShapes
from .version import Destination, ServedVersion

Choose = Callable[[InferRequest], Destination | None]


class DividedModel:
    """The versions that share the requests of a step that names none: those that fit the ensemble, `main` among them.

    The ensemble is compiled for `main`, which is alike in all that matters to it. `choose` returns the destination of a
    request, None where no version takes it.
    """

    def __init__(self, main: ServedVersion, versions: Mapping[int, ServedVersion], choose: Choose) -> None:
        self.main = main
        self.versions = tuple(versions.values())
        self._choose = choose

    @property
    def config(self) -> ModelConfig:
        """Configuration of the version that the ensemble is compiled for."""
        return self.main.config

    @property
    def ready(self) -> bool:
        """True if any of its versions can answer."""
        return any(version.ready for version in self.versions)

    @property
    def takes_batches(self) -> bool:
        """True if any of its versions can take requests now."""
        return any(version.ready and version.takes_batches for version in self.versions)

    @property
    def asleep(self) -> bool:
        """True if a request must wake all of its versions."""
        return all(version.asleep for version in self.versions)

    @property
    def problem(self) -> str:
        """Reason why none of its versions can answer, "" if one can."""
        return "" if self.ready else self.main.problem

    @property
    def caution(self) -> str:
        """Reason why the version with the highest weight may not be able to answer for long."""
        return self.main.caution

    def destination(self, request: InferRequest) -> Destination:
        """Return what a request of an ensemble is sent to, for all steps of this model."""
        return self._choose(request) or self.main


StepModel = ServedVersion | DividedModel
"""What the requests of a step are sent to."""


class ServedEnsemble(CompositeVersion):
    """A version of an ensemble. It has no resources of its own: its steps are versions of other models of the server.

    `models` are those, by name and version as the steps name them. A request uses the ones that it began with; of a
    model whose versions share the requests, one version for all of its steps.
    """

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        steps: EnsembleSteps,
        models: Mapping[tuple[str, str], StepModel],
        statistics: ModelStatistics,
    ) -> None:
        super().__init__(prepared, version, prepared.config, statistics)
        self._admission = Admission(self.config)
        self._output_shapes = OutputShapes(self.config)
        self._models = models
        self._by_step = [models[step.model, step.version] for step in steps.steps]
        self._divides = any(isinstance(model, DividedModel) for model in self._by_step)
        limit = self.config.ensemble_scheduling.max_inflight_requests
        self._runner = EnsembleRunner(steps, version, self, statistics, LoopClock(), limit)
        self._cached = prepared.cached_answers(version, statistics, LoopClock())

    def _parts(self) -> Iterator[ServedVersion]:
        for model in self._models.values():
            if isinstance(model, DividedModel):
                yield from model.versions
            else:
                yield model

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
        seen = admitted.seen_by_model(request)
        deliver = self._output_shapes.before(deliver)
        if self._cached is None:
            return self._run(seen, admitted.size, deliver)
        return self._cached.submit(seen, deliver, None, lambda then: self._run(seen, admitted.size, then))

    def _run(self, request: InferRequest, size: int, deliver: Deliver) -> Submission:
        steps = _RequestSteps(self._by_step, request) if self._divides else self
        return self._runner.submit(request, size, deliver, steps)

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        model = self._by_step[index]
        assert not isinstance(model, DividedModel)
        return model.submit(request, deliver)

    async def close(self, grace: float) -> None:
        """Release nothing: requests on their way hold the steps they need."""


class _RequestSteps:
    """The steps of one request: a model whose versions share the requests answers all of its steps by one version."""

    __slots__ = ("_by_step", "_destinations", "_request")

    def __init__(self, by_step: Sequence[StepModel], request: InferRequest) -> None:
        self._by_step = by_step
        self._request = request
        self._destinations: dict[DividedModel, Destination] = {}

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request of a step. Raises ServingError."""
        model = self._by_step[index]
        if not isinstance(model, DividedModel):
            return model.submit(request, deliver)
        destination = self._destinations.get(model)
        if destination is None:
            destination = self._destinations[model] = model.destination(self._request)
        return destination.submit(request, deliver)
