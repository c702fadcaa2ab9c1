"""What versions have in common whose requests other models of the server answer: ensembles and routed models."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.telemetry.statistics import ModelStatistics

from .served import ServedVersion


class DelegatingVersion:
    """A version without instances: its requests are requests to versions of other models, its delegates.

    These are held from the first hold of this version to the release of its last one.
    """

    def __init__(self, prepared: Prepared, version: int, config: ModelConfig, statistics: ModelStatistics) -> None:
        self.name = config.name
        self.version = version
        self.config = config
        self.decoupled = bool(config.model_transaction_policy.decoupled)
        self.statistics = statistics
        self.labels: Mapping[str, Sequence[str]] = prepared.labels
        self.folder: Path = prepared.folder.path
        self._retained: tuple[ServedVersion, ...] = ()
        self._holders = 0

    def _delegates(self) -> Iterable[ServedVersion]:
        """Return the versions that would answer a request now."""
        raise NotImplementedError

    @property
    def instances(self) -> int | None:
        return None

    @property
    def instance_names(self) -> Collection[str]:
        return ()

    @property
    def owes(self) -> bool:
        return False

    async def answered(self) -> None:
        """Return at once: its requests wait at its delegates."""

    def hold(self) -> None:
        """Hold the delegates, once for all holders of this one."""
        if not self._holders:
            self._retained = tuple(self._delegates())
            for model in self._retained:
                model.hold()
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if not self._holders:
            for model in self._retained:
                model.release()
            self._retained = ()
