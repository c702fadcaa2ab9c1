"""An adapter in service: requests to it are requests to its base model, which applies the adapter."""

import asyncio
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import FailureReason, ServingError, invalid, unavailable
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.parameters.adapters import LORA_NAME, SAMPLING
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.tensors import Tensor, raw_tensor

from .served import Holds, ServedModel

_LENGTH = 4
"""Bytes of the length before a text."""

Base = Callable[[], ServedModel | None]


class ServedAdapter:
    """A version of an adapter. `base` returns the version of its base model that serves, None if none does."""

    def __init__(
        self, prepared: Prepared, version: int, config: ModelConfig, base: Base, statistics: ModelStatistics
    ) -> None:
        self.name = config.name
        self.version = version
        self.config = config
        self.decoupled = bool(config.model_transaction_policy.decoupled)
        self.statistics = statistics
        self.labels: Mapping[str, Sequence[str]] = prepared.labels
        self.folder = prepared.folder.path
        self.path: Path = prepared.folder.version_path(version)
        self._base = base
        self._open = Holds()
        self._running = 0
        self._by_input = any(tensor.name == LORA_NAME for tensor in config.input)

    @property
    def ready(self) -> bool:
        base = self._base()
        return base is not None and base.ready and self.name not in base.adapters.failures

    @property
    def problem(self) -> str:
        base = self._base()
        if base is None:
            return f"the base model of adapter '{self.name}' is not loaded"
        return base.adapters.failures.get(self.name, base.problem)

    @property
    def caution(self) -> str:
        base = self._base()
        return "" if base is None else base.caution

    @property
    def running(self) -> int:
        return self._running

    @property
    def instances(self) -> int | None:
        return None

    @property
    def instance_names(self) -> Collection[str]:
        return ()

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
        named = self._named(request)
        if named is not None:
            request.inputs = {**request.inputs, named.name: named}
        answer = _Answer(self, deliver)
        self._begin()
        try:
            return base.submit(request, answer.receive)
        except ServingError:
            self._end()
            raise

    def _named(self, request: InferRequest) -> Tensor | None:
        """Return the input that names the adapter. None where the client's cannot be read, which the model says.

        Raises ServingError for a request that names another adapter.
        """
        provided = request.inputs.get(LORA_NAME if self._by_input else SAMPLING)
        text = None if provided is None else bytes(provided.data[_LENGTH:])
        if self._by_input:
            chosen, value = text, self.name.encode()
        else:
            try:
                parameters = msgspec.json.decode(text or b"{}", type=dict[str, Any])
            except msgspec.MsgspecError:
                return None
            chosen, value = (
                _encoded(parameters.get(LORA_NAME)),
                msgspec.json.encode({**parameters, LORA_NAME: self.name}),
            )
        if chosen not in (None, self.name.encode()):
            raise invalid(f"{request.log_prefix}'{LORA_NAME}' names another adapter than the model '{self.name}'")
        name = LORA_NAME if self._by_input else SAMPLING
        return raw_tensor(name, "BYTES", (1,), struct.pack("<I", len(value)) + value)

    def ended(self, arrived: int, responded: int, now: int, response: InferResponse) -> None:
        """Count a request with its last response."""
        self._end()
        if response.error is not None:
            self.statistics.failed(now - arrived, response.error.reason or FailureReason.BACKEND)
            return
        self.statistics.took(now - arrived, responded, now, response.is_empty)
        self.statistics.succeeded(1, now - arrived, 0, 1)

    def _begin(self) -> None:
        self._open.add()
        self._running += 1

    def _end(self) -> None:
        self._open.remove()
        self._running -= 1

    @property
    def owes(self) -> bool:
        return False

    async def answered(self) -> None:
        """Return at once: its requests wait at the base model."""

    def hold(self) -> None:
        self._open.add()

    def release(self) -> None:
        self._open.remove()

    async def close(self, grace: float) -> None:
        """Unload the adapter once its requests have ended, unless another version has its name by now."""
        await self._open.wait_for_none(grace)
        base = self._base()
        if base is not None:
            await base.remove_adapter(self.name, self.path)


def _encoded(name: object) -> bytes | None:
    return None if name is None else str(name).encode()


class _Answer:
    """The responses to one request of an adapter, which get its name."""

    __slots__ = ("_adapter", "_arrived", "_deliver", "_responded")

    def __init__(self, adapter: ServedAdapter, deliver: Deliver) -> None:
        self._adapter = adapter
        self._deliver = deliver
        self._arrived = _now()
        self._responded = 0

    def receive(self, response: InferResponse) -> None:
        adapter = self._adapter
        response.model_name, response.model_version = adapter.name, str(adapter.version)
        now = _now()
        if response.final:
            adapter.ended(self._arrived, self._responded, now, response)
        else:
            adapter.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        self._deliver(response)


def _now() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)
