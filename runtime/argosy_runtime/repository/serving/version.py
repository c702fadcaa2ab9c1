"""What the server knows of a version in service, whatever answers its requests."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.telemetry.machine.attribution import OnGpu
from argosy_runtime.telemetry.statistics import ModelStatistics


class Holds:
    """A count of open requests that need a version, also after it has left service: those of ensembles, of adapters."""

    def __init__(self) -> None:
        self._count = 0
        self._none: asyncio.Event | None = None

    def add(self) -> None:
        """Count a request that begins."""
        self._count += 1

    def remove(self) -> None:
        """Count a request that has ended."""
        self._count -= 1
        if not self._count and self._none is not None:
            self._none.set()

    async def wait_for_none(self, seconds: float) -> None:
        """Wait until no request is left, or the time is over."""
        if not self._count:
            return
        self._none = asyncio.Event()
        try:
            await asyncio.wait_for(self._none.wait(), seconds)
        except TimeoutError:
            return


class Destination(Protocol):
    """What a request is sent to: a version, or a version of whose requests some are copied to another one."""

    @property
    def version(self) -> int:
        """The version that answers."""

    @property
    def decoupled(self) -> bool:
        """True if it may answer a request several times."""

    @property
    def config(self) -> ModelConfig:
        """The configuration of the version that answers."""

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun here."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it is refused at once; other errors are delivered."""


class ServedVersion(Protocol):
    """A version that takes requests."""

    name: str
    version: int
    folder: Path
    config: ModelConfig
    statistics: ModelStatistics
    labels: Mapping[str, Sequence[str]]
    decoupled: bool

    @property
    def ready(self) -> bool:
        """True if it can answer."""

    @property
    def takes_batches(self) -> bool:
        """True if an instance can take requests now; those of a version that is being restarted wait."""

    @property
    def asleep(self) -> bool:
        """True if a request must wake it."""

    @property
    def problem(self) -> str:
        """Reason why it cannot answer, "" if it can."""

    @property
    def caution(self) -> str:
        """Reason why it may not be able to answer for long, "" without one."""

    @property
    def checks_readiness(self) -> bool:
        """True if the model says itself whether it is ready."""

    @property
    def unready(self) -> str:
        """Why the model said last that it is not ready, "" if it did not. It takes requests all the same."""

    async def check_readiness(self) -> None:
        """Have every instance say whether it is ready, and keep in `unready` what one of them lacks."""

    @property
    def pids(self) -> Sequence[int]:
        """Processes of the instances; none for instances in threads of the server."""

    @property
    def on_gpus(self) -> Mapping[int, OnGpu]:
        """Its instances on each GPU, by ordinal, in processes or threads."""

    @property
    def running(self) -> int:
        """Number of requests that are being executed."""

    @property
    def instances(self) -> int | None:
        """Number of instances that take batches; None for an ensemble, which has none."""

    @property
    def instance_names(self) -> Collection[str]:
        """Names of the loaded instances, those that are asleep among them."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it is refused at once; other errors are delivered."""

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun here. It is taken also by a version that
        leaves service.
        """

    @property
    def owes(self) -> bool:
        """True while a request waits for an answer of its own, or may follow in a sequence; an ensemble's wait at its
        steps.
        """

    async def answered(self) -> None:
        """Wait until all requests are answered, and all sequences have ended."""

    def hold(self) -> None:
        """Keep the version until `release`, for an ensemble's request that will need it."""

    def release(self) -> None:
        """Release a hold: that request has ended."""

    async def close(self, grace: float) -> None:
        """Answer the accepted requests, then release everything."""
