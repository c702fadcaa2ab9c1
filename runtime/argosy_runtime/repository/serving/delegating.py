"""What versions have in common whose requests other models of the server answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.messages import InferRequest
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.telemetry.machine.attribution import OnGpu
from argosy_runtime.telemetry.statistics import ModelStatistics

from .version import ServedVersion


class DelegatingVersion:
    """A version without instances: its requests are requests to versions of other models."""

    checks_readiness: Final = False
    unready: Final = ""
    pids: Final[Sequence[int]] = ()
    on_gpus: Final[Mapping[int, OnGpu]] = MappingProxyType({})

    def __init__(self, prepared: Prepared, version: int, config: ModelConfig, statistics: ModelStatistics) -> None:
        self.name = config.name
        self.version = version
        self.config = config
        self.decoupled = bool(config.model_transaction_policy.decoupled)
        self.statistics = statistics
        self.labels: Mapping[str, Sequence[str]] = prepared.labels
        self.folder: Path = prepared.folder.path

    @property
    def instances(self) -> int | None:
        return None

    @property
    def instance_names(self) -> Collection[str]:
        return ()

    async def check_readiness(self) -> None:
        """Do nothing: the other models say whether they are ready."""

    def continues(self, request: InferRequest) -> bool:
        return False

    @property
    def owes(self) -> bool:
        return False

    async def answered(self) -> None:
        """Return at once: its requests wait at the other models."""


class CompositeVersion(DelegatingVersion):
    """An ensemble or a routed model: what holds it holds all versions that it consists of."""

    def __init__(self, prepared: Prepared, version: int, config: ModelConfig, statistics: ModelStatistics) -> None:
        super().__init__(prepared, version, config, statistics)
        self._retained: tuple[ServedVersion, ...] = ()
        self._holders = 0

    def _parts(self) -> Iterable[ServedVersion]:
        """Return the versions that requests may go to now."""
        raise NotImplementedError

    def continues(self, request: InferRequest) -> bool:
        return any(part.continues(request) for part in self._parts())

    def hold(self) -> None:
        """Hold the parts, once for all holders."""
        if not self._holders:
            self._retained = tuple(self._parts())
            for part in self._retained:
                part.hold()
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if not self._holders:
            for part in self._retained:
                part.release()
            self._retained = ()
