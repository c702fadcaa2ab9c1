"""What running models may ask of the server (business logic scripting), as the event loop offers it."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from argosy_runtime.backends.contract import MetricFamilySpec
from argosy_runtime.messages import InferRequest, InferResponse


class ServerCalls(Protocol):
    """The server's side of `backends.contract.Host`: the same names, as coroutines."""

    async def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """Run another model; every response, the model's errors on them."""

    async def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """Load or reload a model."""

    async def unload_model(self, name: str, unload_dependents: bool) -> None:
        """Unload a model."""

    async def is_model_ready(self, name: str, version: str) -> bool:
        """Whether a model can answer."""

    async def log(self, level: str, message: str) -> None:
        """A line for the log."""

    async def metric(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """Act on a custom metric."""


NAMES = frozenset({"infer", "load_model", "unload_model", "is_model_ready", "log", "metric"})


class ThreadHost:
    """`Host` for a model on a thread of the server: hands each call to the event loop and waits."""

    def __init__(self, calls: ServerCalls, loop: asyncio.AbstractEventLoop) -> None:
        self._calls = calls
        self._loop = loop

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """See `Host`."""
        responses: Sequence[InferResponse] = self._wait(self._calls.infer(request, decoupled))
        return responses

    def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """See `Host`."""
        self._wait(self._calls.load_model(name, config, files))

    def unload_model(self, name: str, unload_dependents: bool) -> None:
        """See `Host`."""
        self._wait(self._calls.unload_model(name, unload_dependents))

    def is_model_ready(self, name: str, version: str) -> bool:
        """See `Host`."""
        return bool(self._wait(self._calls.is_model_ready(name, version)))

    def log(self, level: str, message: str) -> None:
        """See `Host`. Does not wait."""
        asyncio.run_coroutine_threadsafe(self._calls.log(level, message), self._loop)

    def metric(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """See `Host`."""
        return float(self._wait(self._calls.metric(family, labels, action, value)))
