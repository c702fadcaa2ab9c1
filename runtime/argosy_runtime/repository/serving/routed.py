"""A version of a routed model in service: each of its requests is answered by one of its variants."""

from collections.abc import Iterator, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.variants.request import submit
from argosy_runtime.execution.variants.runner import VariantRunner
from argosy_runtime.language.adapter_names import named_adapter, names_adapters
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.modelconfig.parameters.variants import VariantRouting
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.telemetry.statistics import ModelStatistics

from .adapter_table import LoadedAdapter
from .adapters import ServedAdapter
from .delegating import CompositeVersion
from .served import ServedModel
from .variant_adapters import VariantAdapters

AnyVariant = ServedModel | ServedAdapter
"""What a variant may be."""


class ServedVariants(CompositeVersion):
    """A version of a routed model. It has no resources of its own: its variants are other models of the server.

    `models`: the version of each variant that serves, None for one that is not loaded. Adapters are its variants', and
    a request that names one is answered by those that have it.
    """

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        config: ModelConfig,
        routing: VariantRouting,
        models: Sequence[AnyVariant | None],
        statistics: ModelStatistics,
    ) -> None:
        super().__init__(prepared, version, config, statistics)
        self.routing = routing
        self._admission = Admission(config)
        self._models = tuple(models)
        self._adapters = VariantAdapters(self.name, models)
        self._names_adapters = names_adapters(config)
        self.runner = VariantRunner(self.name, version, routing, statistics, LoopClock())
        self.runner.follow(models)

    def follow(self, models: Sequence[AnyVariant | None]) -> None:
        """Use these versions of the variants for new requests."""
        self._models = tuple(models)
        self._adapters = VariantAdapters(self.name, models)
        self.runner.follow(models)

    def _parts(self) -> Iterator[AnyVariant]:
        return (model for model in self._models if model is not None)

    @property
    def ready(self) -> bool:
        return self.runner.ready

    @property
    def problem(self) -> str:
        return "; ".join(model.problem for model in self._models if model is not None and not model.ready)

    @property
    def caution(self) -> str:
        """Return why it may soon not answer: only what is true of every variant."""
        cautions = ["" if model is None else model.caution for model in self._models]
        return "; ".join(cautions) if all(cautions) else ""

    @property
    def running(self) -> int:
        return self.runner.in_flight

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        size = self._admission.admit(request).size
        adapter = named_adapter(request) if self._names_adapters else ""
        return submit(self.runner, request, size, deliver, self._adapters.without(adapter) if adapter else ())

    @property
    def takes_batches(self) -> bool:
        """True if an instance of a variant can take requests now."""
        return any(model is not None and model.takes_batches for model in self._models)

    @property
    def asleep(self) -> bool:
        """False: a request wakes the variant that it needs."""
        return False

    async def wake(self) -> None:
        """Do nothing: a request wakes the variant that it needs."""

    def takes_adapter(self, name: str) -> bool:
        """Return whether a variant can answer requests that name an adapter."""
        return self._adapters.takes(name)

    def adapter_problem(self, name: str) -> str:
        """Return why no variant can answer requests that name an adapter."""
        return self._adapters.problem(name)

    def adapter_caution(self, name: str) -> str:
        """Return which variants do not have an adapter, or why none may answer for long."""
        return self.caution or self._adapters.caution(name)

    def lacks_adapter(self, adapter: LoadedAdapter) -> bool:
        """Return whether there are variants that came after an adapter."""
        return self._adapters.lacks(adapter)

    async def add_adapter(self, adapter: LoadedAdapter) -> None:
        """Load an adapter into every variant that takes it. Raises ServingError where none does."""
        await self._adapters.add(adapter)

    async def remove_adapter(self, adapter: LoadedAdapter) -> None:
        """Unload an adapter from every variant."""
        await self._adapters.remove(adapter)

    async def close(self, grace: float) -> None:
        """Change no variant any more. Nothing is released: open requests are the variants' own."""
        self.runner.close()
