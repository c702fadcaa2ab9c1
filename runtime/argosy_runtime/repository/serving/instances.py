"""Instances of a version: how each is created, and which slot of the group belongs to which placement."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import isolation
from argosy_runtime.backends.contract import (
    ANYWHERE,
    EngineState,
    HostPolicy,
    InstanceSpec,
    Isolation,
    ReservedMemory,
    ServerCall,
)
from argosy_runtime.backends.devices.gpus import named_gpus
from argosy_runtime.errors import unavailable
from argosy_runtime.execution.calls.server import ServerCalls, Value
from argosy_runtime.execution.devices import used_fraction
from argosy_runtime.execution.instance import Instance
from argosy_runtime.execution.instance_group import InstanceGroup, NewInstance, OnDeath, Slot
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.execution.thread import ThreadInstance
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.modelconfig import InstancePlacement, instances
from argosy_runtime.modelconfig.inplace import instance_changes
from argosy_runtime.modelconfig.modelfiles import for_device
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.telemetry.engines import EngineStatistics
from argosy_runtime.telemetry.machine.attribution import OnGpu

Reserved = dict[tuple[str, int], ReservedMemory]
"""What the framework of each instance has reserved, by the instance's name and device."""


class InstanceCalls:
    """`ServerCalls` of one instance, whose engine's state goes to the version's statistics, and its reserved memory to
    `reserved`.
    """

    def __init__(
        self, calls: ServerCalls, placement: InstancePlacement, engines: EngineStatistics, reserved: Reserved
    ) -> None:
        self._calls = calls
        self._instance, self._owner = placement.name, (placement.name, placement.device_id)
        self._engines = engines
        self._reserved = reserved

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        return self._calls.infer(request, decoupled, deliver)

    async def do(self, what: ServerCall, owner: int) -> Value:
        if isinstance(what, EngineState):
            self._engines.update(self._instance, what)
            return None
        if isinstance(what, ReservedMemory):
            self._reserved[self._owner] = what
            return None
        return await self._calls.do(what, owner)

    def forget(self, owner: int) -> None:
        self._calls.forget(owner)


class InstanceFactory:
    """Factory of one version's instances. `timeout`: seconds that one may load.

    `engines` has the states of their engines. `environment`: folder of the backend's engine environment, if a flag
    names one. `host_policies` by name. `requirements`: folder of environments with models' requirements, if a flag
    allows them. `gpu_limits`: the part of a GPU's memory that may be in use before another model is loaded there.
    """

    def __init__(
        self,
        folder: ModelFolder,
        version: int,
        gpus: Mapping[int, str],
        calls: ServerCalls,
        engines: EngineStatistics,
        timeout: float,
        environment: Path | None,
        host_policies: Mapping[str, HostPolicy],
        requirements: Path | None = None,
        gpu_limits: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        self._folder = folder
        self._version = version
        self._gpus = gpus
        self._calls = calls
        self._engines = engines
        self._timeout = timeout
        self._environment = environment
        self._host_policies = host_policies
        self._requirements = requirements
        self._gpu_limits = gpu_limits
        self._reserved: Reserved = {}

    def placements(self, config: ModelConfig) -> list[InstancePlacement]:
        """Return the instances of a complete configuration."""
        return [placement for placement in instances(config, tuple(self._gpus)) if not placement.passive]

    def require_gpu_memory(self, config: ModelConfig) -> None:
        """Raise ServingError (UNAVAILABLE) where more of a GPU's memory is in use than `gpu_limits` allow. Blocks."""
        gpus = {placement.device_id for placement in self.placements(config) if placement.kind == "KIND_GPU"}
        for gpu in sorted(gpus & self._gpu_limits.keys()):
            if used_fraction(gpu) > self._gpu_limits[gpu]:
                raise unavailable(
                    f"can not create model '{config.name}': memory limit set for GPU {gpu} has exceeded, model loading "
                    "is rejected."
                )

    def on_gpus(self, config: ModelConfig, placements: Iterable[InstancePlacement]) -> dict[int, OnGpu]:
        """Return the instances on each GPU; those that choose their GPUs themselves may be on all of them."""
        every: dict[int, list[ReservedMemory | None]] = {}
        for placement in placements:
            for gpu in self._gpus_of(config, placement):
                every.setdefault(gpu, []).append(self._reserved.get((placement.name, placement.device_id)))
        return {gpu: OnGpu(len(reserved), _sum(gpu, reserved)) for gpu, reserved in every.items()}

    def _gpus_of(self, config: ModelConfig, placement: InstancePlacement) -> Iterable[int]:
        if placement.kind == "KIND_GPU":
            return (placement.device_id,)
        return (named_gpus(config) or tuple(self._gpus)) if placement.kind == "KIND_MODEL" else ()

    def maker(self, config: ModelConfig, placement: InstancePlacement) -> NewInstance:
        """Return the function that creates a placement's instance, again after each loss."""
        capability = self._gpus.get(placement.device_id) if placement.kind == "KIND_GPU" else None
        spec = InstanceSpec(
            config=for_device(config, capability),
            version=self._version,
            model_dir=self._folder.path,
            version_dir=self._folder.version_path(self._version),
            name=placement.name,
            kind=placement.kind,
            device_id=placement.device_id,
            environment=self._environment,
            host_policy=self._host_policies.get(placement.host_policy, ANYWHERE),
            requirements=self._requirements,
        )
        calls = InstanceCalls(self._calls, placement, self._engines, self._reserved)
        isolated = isolation(config) is Isolation.PROCESS

        def made(on_death: OnDeath) -> Instance:
            self._reserved.pop((placement.name, placement.device_id), None)  # it was another process
            if isolated:
                instance: Instance = ProcessInstance(spec, calls, self._timeout, on_death)
            else:
                instance = ThreadInstance(spec, calls, self._timeout, on_death)
            instance.placement = placement
            return instance

        return made


def _sum(gpu: int, reserved: Iterable[ReservedMemory | None]) -> int | None:
    """Return the bytes of several instances on a GPU; None where one of them does not say."""
    sizes = [None if one is None else one.gpus.get(gpu) for one in reserved]
    return sum(max(0, size) for size in sizes if size is not None) if None not in sizes else None


class VersionInstances:
    """A version's slots by their placements. `placements` are the ones of `group`, in its order."""

    def __init__(self, placements: Sequence[InstancePlacement], group: InstanceGroup) -> None:
        self._group = group
        self._slots = list(zip(placements, group.slots, strict=True))

    def difference(
        self, desired: Sequence[InstancePlacement]
    ) -> tuple[list[InstancePlacement], list[tuple[InstancePlacement, Slot]]]:
        """Return the placements to add and the slots to remove for the desired ones.

        Lost instances are removed first.
        """
        by_use = sorted(self._slots, key=lambda slot: not self._group.ready(slot[1]))
        added, removed = instance_changes([placement for placement, _ in by_use], desired)
        return added, [by_use[index] for index in removed]

    @property
    def all(self) -> Sequence[tuple[InstancePlacement, Slot]]:
        """Every placement with its slot."""
        return tuple(self._slots)

    def swap(
        self,
        added: Sequence[tuple[InstancePlacement, Slot]],
        removed: Sequence[tuple[InstancePlacement, Slot]],
    ) -> None:
        """Record added and removed slots."""
        self._slots = [slot for slot in self._slots if slot not in removed] + list(added)
