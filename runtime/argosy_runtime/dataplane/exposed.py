"""All metrics of a server: of its models, of itself and its machine, and those that models define."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from time import monotonic_ns, time

from argosy_runtime.backends.devices.pinned_pool import PINNED_POOL
from argosy_runtime.ondemand.families import on_demand_families
from argosy_runtime.ondemand.loads import OnDemandLoads
from argosy_runtime.repository import describing
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.scheduling.response_cache.cache import ResponseCache
from argosy_runtime.telemetry.argosy_families import argosy_families, device_families
from argosy_runtime.telemetry.custom import CustomMetrics
from argosy_runtime.telemetry.exposition import Family
from argosy_runtime.telemetry.latencies.settings import MetricsSettings
from argosy_runtime.telemetry.machine.certificates import CertificateState, certificate_families
from argosy_runtime.telemetry.machine.memory import ModelMemory
from argosy_runtime.telemetry.machine.sampling import MachineSampling
from argosy_runtime.telemetry.parts import in_parts
from argosy_runtime.telemetry.triton_families import cache_families, pinned_families, triton_families
from argosy_runtime.telemetry.vllm_families import vllm_families
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS


class ExposedMetrics:
    """What a server exposes. `custom` are the metrics that models define, none of which has the name of another one."""

    def __init__(
        self,
        settings: MetricsSettings,
        certificates: Callable[[], Iterable[CertificateState]],
        memory: ModelMemory,
        machine: MachineSampling | None,
        cache: ResponseCache | None,
        on_demand: OnDemandLoads | None,
    ) -> None:
        self._settings = settings
        self._certificates = certificates
        self._memory = memory
        self._machine = machine
        self._cache = cache
        self._on_demand = on_demand
        self.custom = CustomMetrics([family.name for family in (*self._of_models([]), *self._own())])

    def texts(self, records: Sequence[ModelRecord]) -> AsyncIterator[bytes]:
        """Return everything in Prometheus' text format, a few models at a time."""
        return in_parts(records, self._of_models, lambda: [*self._own(), *self.custom.families()])

    def _of_models(self, records: Sequence[ModelRecord]) -> list[Family]:
        now = monotonic_ns()
        series = describing.series(records, now)
        return [*triton_families(series, self._settings), *argosy_families(series, now), *vllm_families(series, time())]

    def _own(self) -> list[Family]:
        machine = self._machine.families() if self._machine is not None else []
        cache = cache_families(self._cache) if self._cache is not None else []
        on_demand = [] if self._on_demand is None else on_demand_families(self._on_demand)
        pools = [*pinned_families(PINNED_POOL), *device_families(DEVICE_TRANSFERS)]
        own = [*cache, *pools, *certificate_families(self._certificates()), *machine]
        return [*own, *self._memory.families(), *on_demand]
