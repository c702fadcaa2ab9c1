"""An adapter in service: requests to it are requests to its base model, which applies the adapter."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.execution.delegating import count_delegated
from argosy_runtime.language.adapter_names import has_name_input, set_adapter
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.telemetry.statistics import ModelStatistics

from .adapter_table import LoadedAdapter
from .delegating import DelegatingVersion
from .version import Holds

_log = logging.getLogger("argosy.repository")


class AdapterBase(Protocol):
    """A model that adapters can be loaded into: one with instances, or one with variants, some of which may take them.

    `config`: that of the version that serves.
    """

    name: str
    config: ModelConfig

    @property
    def takes_batches(self) -> bool:
        """True if an instance can take requests now."""

    @property
    def asleep(self) -> bool:
        """True if a request must wake it."""

    async def wake(self) -> None:
        """Take requests again. Raises ServingError."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request; `deliver` gets the responses. Raises ServingError."""

    def takes_adapter(self, name: str) -> bool:
        """Return whether it can answer requests that name an adapter."""

    def adapter_problem(self, name: str) -> str:
        """Return why it cannot answer requests that name an adapter, "" if it can."""

    def adapter_caution(self, name: str) -> str:
        """Return why it may not answer requests that name an adapter for long, or not everywhere, "" without one."""

    def lacks_adapter(self, adapter: LoadedAdapter) -> bool:
        """Return whether `add_adapter` has something to do for an adapter that it loaded before."""

    async def add_adapter(self, adapter: LoadedAdapter) -> None:
        """Load an adapter. Raises ServingError where nothing takes it."""

    async def remove_adapter(self, adapter: LoadedAdapter) -> None:
        """Unload an adapter, unless another one has its name by now."""


Base = Callable[[], AdapterBase | None]


class ServedAdapter(DelegatingVersion):
    """A version of an adapter. `base` returns the version of its base model that serves, None if none does.

    `loaded_name`: the name by which the base model has it, which differs between versions that one base model has.
    """

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        config: ModelConfig,
        base: Base,
        statistics: ModelStatistics,
        loaded_name: str,
    ) -> None:
        super().__init__(prepared, version, config, statistics)
        self.adapter = LoadedAdapter(loaded_name, prepared.folder.version_path(version))
        self._base = base
        self._open = Holds()
        self._running = 0
        self._loading: set[asyncio.Task[None]] = set()
        self._by_input = has_name_input(config)

    @property
    def ready(self) -> bool:
        base = self._base()
        return base is not None and base.takes_adapter(self.adapter.name)

    @property
    def problem(self) -> str:
        base = self._base()
        if base is None:
            return f"the base model of adapter '{self.name}' is not loaded"
        return base.adapter_problem(self.adapter.name)

    @property
    def caution(self) -> str:
        base = self._base()
        return "" if base is None else base.adapter_caution(self.adapter.name)

    @property
    def running(self) -> int:
        return self._running

    @property
    def takes_batches(self) -> bool:
        """True if an instance of the base model can take requests now."""
        base = self._base()
        return base is not None and base.takes_batches

    @property
    def asleep(self) -> bool:
        """True if the base model is asleep."""
        base = self._base()
        return base is not None and base.asleep

    async def sleep(self) -> None:
        """Do nothing: the base model sleeps by itself."""

    async def wake(self) -> None:
        """Wake the base model. Raises ServingError."""
        base = self._base()
        if base is not None:
            await base.wake()

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        base = self._base()
        if base is None:
            raise unavailable(self.problem)
        set_adapter(request, self.adapter.name, by_input=self._by_input, alias=self.name)
        answer = _Answer(self, request, deliver)
        self._begin()
        try:
            return base.submit(request, answer.receive)
        except Exception:
            self._end()
            raise

    def ended(self, request: InferRequest, arrived: int, responded: int, now: int, response: InferResponse) -> None:
        """Count a request with its last response."""
        self._end()
        count_delegated(self.statistics, request, now, 1, arrived, responded, response)

    def _begin(self) -> None:
        self._open.add()
        self._running += 1

    def _end(self) -> None:
        self._open.remove()
        self._running -= 1

    def hold(self) -> None:
        self._open.add()

    def release(self) -> None:
        self._open.remove()

    def follow(self, base: AdapterBase, config: ModelConfig) -> None:
        """Take the tensors of the base model that serves now, and load the adapter into variants that are new there."""
        self.config = config
        if base.lacks_adapter(self.adapter):
            task = asyncio.get_running_loop().create_task(self._load_into(base))
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)

    async def _load_into(self, base: AdapterBase) -> None:
        try:
            await base.add_adapter(self.adapter)
        except ServingError as error:
            _log.error("adapter '%s' of model '%s' cannot be loaded: %s", self.name, base.name, error.message)

    async def close(self, grace: float) -> None:
        """Unload the adapter once its requests have ended, unless another version has its name by now."""
        await self._open.wait_for_none(grace)
        for task in self._loading:
            task.cancel()
        base = self._base()
        if base is not None:
            await base.remove_adapter(self.adapter)


class _Answer:
    """The responses to one request of an adapter, which get its name."""

    __slots__ = ("_adapter", "_arrived", "_deliver", "_request", "_responded")

    def __init__(self, adapter: ServedAdapter, request: InferRequest, deliver: Deliver) -> None:
        self._adapter = adapter
        self._request = request
        self._deliver = deliver
        self._arrived = _now()
        self._responded = 0

    def receive(self, response: InferResponse) -> None:
        adapter = self._adapter
        response.model_name, response.model_version = adapter.name, str(adapter.version)
        now = _now()
        if response.final:
            adapter.ended(self._request, self._arrived, self._responded, now, response)
        else:
            if not self._request.is_shadow:
                adapter.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        self._deliver(response)


def _now() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)
