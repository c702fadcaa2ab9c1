"""Instance groups: their defaults, and the instances they stand for on a given machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

# Backends that use the cores better with two instances than with one.
_TWO_ON_CPU = frozenset({"onnxruntime", "tensorflow"})
# Backends that compute on CPUs alone.
_ON_CPU = frozenset({"fil"})


@dataclass(frozen=True, slots=True)
class InstancePlacement:
    """One instance. `device_id` is the GPU's ordinal, 0 off the GPU; `kind` KIND_CPU, KIND_GPU or KIND_MODEL.

    Instances of one group on different GPUs share names, as in Triton: (name, device_id) distinguishes them.
    `group` is the group's configuration without name, count and GPUs.
    """

    name: str
    kind: str
    device_id: int
    host_policy: str
    passive: bool = False
    group: bytes = field(default=b"", compare=False, repr=False)

    @property
    def alike(self) -> tuple[bytes, int]:
        """Key that is equal for instances that a server loads alike."""
        return self.group, self.device_id


def fill_instance_groups(config: ModelConfig, gpus: Sequence[int] | None) -> None:
    """Set every group's name, kind, count and GPUs, in place. Ensembles have no groups.

    `gpus` are the machine's. Where they are None (unknown), only names are filled in.
    """
    if config.HasField("ensemble_scheduling"):
        return
    if not config.instance_group:
        config.instance_group.add(name=config.name)
    for index, group in enumerate(config.instance_group):
        group.name = group.name or f"{config.name}_{index}"
        if gpus is not None:
            _resolve(group, config.backend, gpus)


def _resolve(group: ModelInstanceGroup, backend: str, gpus: Sequence[int]) -> None:
    if group.kind == ModelInstanceGroup.KIND_AUTO:
        on_gpu = bool(gpus) and backend not in _ON_CPU and all(gpu in gpus for gpu in group.gpus)
        group.kind = ModelInstanceGroup.KIND_GPU if on_gpu else ModelInstanceGroup.KIND_CPU
    if group.count < 1:
        two = group.kind == ModelInstanceGroup.KIND_CPU and backend in _TWO_ON_CPU
        group.count = 2 if two else 1
    if group.kind == ModelInstanceGroup.KIND_GPU and not group.gpus:
        group.gpus.extend(sorted(gpus))


def instances(config: ModelConfig, gpus: Sequence[int]) -> list[InstancePlacement]:
    """Return every instance of a configuration on a machine with these GPUs. `count` is per GPU.

    Groups that are not normalized yet are taken with their defaults; the configuration is not changed.
    """
    resolved = ModelConfig()
    resolved.CopyFrom(config)
    fill_instance_groups(resolved, gpus)
    return [
        InstancePlacement(
            name=f"{group.name}_{number}",
            kind=ModelInstanceGroup.Kind.Name(group.kind),
            device_id=device,
            host_policy=group.host_policy or _host_policy(group.kind, device),
            passive=group.passive,
            group=alike,
        )
        for group in resolved.instance_group
        for alike in [_but_for_count(group)]
        for number in range(group.count)
        for device in (group.gpus if group.kind == ModelInstanceGroup.KIND_GPU else [0])
    ]


def _but_for_count(group: ModelInstanceGroup) -> bytes:
    rest = ModelInstanceGroup()
    rest.CopyFrom(group)
    for name in ("name", "count", "gpus"):
        rest.ClearField(name)
    serialized: bytes = rest.SerializeToString(deterministic=True)
    return serialized


def _host_policy(kind: int, device: int) -> str:
    if kind == ModelInstanceGroup.KIND_GPU:
        return f"gpu_{device}"
    return "model" if kind == ModelInstanceGroup.KIND_MODEL else "cpu"
