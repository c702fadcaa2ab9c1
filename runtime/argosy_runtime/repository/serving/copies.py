"""The copies of a model that a version's instances are: which of them stands for which place of its configuration."""

from collections.abc import Mapping, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import isolation
from argosy_runtime.backends.contract import InstanceSpec, Isolation
from argosy_runtime.execution.calls import ServerCalls
from argosy_runtime.execution.instance_group import InstanceGroup, NewInstance, Slot
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.execution.thread import ThreadInstance
from argosy_runtime.modelconfig import InstancePlacement, instances
from argosy_runtime.modelconfig.inplace import instance_changes
from argosy_runtime.modelconfig.modelfiles import for_device
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.telemetry.engines import EngineStatistics

from .engines import InstanceCalls


class CopyMaker:
    """Says how each instance of one version is made. `timeout`: how many seconds one may load. `engines` hears of those
    that are inside of instances.
    """

    def __init__(
        self,
        folder: ModelFolder,
        version: int,
        gpus: Mapping[int, str],
        calls: ServerCalls,
        engines: EngineStatistics,
        timeout: float,
    ) -> None:
        self._folder = folder
        self._version = version
        self._gpus = gpus
        self._calls = calls
        self._engines = engines
        self._timeout = timeout

    def placements(self, config: ModelConfig) -> list[InstancePlacement]:
        """Return the instances that a complete configuration asks for."""
        return [place for place in instances(config, tuple(self._gpus)) if not place.passive]

    def maker(self, config: ModelConfig, place: InstancePlacement) -> NewInstance:
        """Return what makes the instance that is to stand there, again and again."""
        capability = self._gpus.get(place.device_id) if place.kind == "KIND_GPU" else None
        spec = InstanceSpec(
            config=for_device(config, capability),
            version=self._version,
            model_dir=self._folder.path,
            version_dir=self._folder.version_path(self._version),
            name=place.name,
            kind=place.kind,
            device_id=place.device_id,
        )
        calls = InstanceCalls(self._calls, place.name, self._engines)
        if isolation(config) is Isolation.PROCESS:
            return lambda on_death: ProcessInstance(spec, calls, self._timeout, on_death)
        return lambda on_death: ThreadInstance(spec, calls, self._timeout, on_death)


class Copies:
    """A version's instances by their places. `placements` are those that `group` was made with, in its order."""

    def __init__(self, placements: Sequence[InstancePlacement], group: InstanceGroup) -> None:
        self._group = group
        self._held = list(zip(placements, group.slots, strict=True))

    def difference(
        self, wanted: Sequence[InstancePlacement]
    ) -> tuple[list[InstancePlacement], list[tuple[InstancePlacement, Slot]]]:
        """Return what is to come and who is to go, that there be what is wanted. Who is lost goes before who serves."""
        by_use = sorted(self._held, key=lambda held: not self._group.ready(held[1]))
        added, removed = instance_changes([placement for placement, _ in by_use], wanted)
        return added, [by_use[index] for index in removed]

    def swap(
        self,
        added: Sequence[tuple[InstancePlacement, Slot]],
        removed: Sequence[tuple[InstancePlacement, Slot]],
    ) -> None:
        """These are there now, and those no more."""
        self._held = [held for held in self._held if held not in removed] + list(added)
