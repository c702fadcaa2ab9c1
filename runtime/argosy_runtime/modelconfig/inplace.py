"""Changes of a configuration that apply to a serving model without a reload.

`instance_group`: new instances are loaded next to the others; removed ones finish their batch and are released.
`dynamic_batching`: the queue continues with the new rules. `max_batch_size`: can be lowered, and raised up to the
loaded value. `version_policy` only selects versions, and the parameter `version_traffic` only divides requests among
them; `queue_policies` is about the queue alone. Instances read all other fields while they load.
"""

from collections import Counter
from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from .instances import InstancePlacement
from .parameters.queue_policies import PARAMETER as QUEUE
from .parameters.traffic import PARAMETER as TRAFFIC

CHANGEABLE = ("version_policy", "instance_group", "dynamic_batching", "max_batch_size")
_PARAMETERS = (TRAFFIC, QUEUE)


def loaded_part(config: ModelConfig) -> ModelConfig:
    """Return a copy without the fields that may change in place."""
    part = ModelConfig()
    part.CopyFrom(config)
    for name in CHANGEABLE:
        # Sequences have slots in the batch, so its size is theirs.
        if name != "max_batch_size" or not config.HasField("sequence_batching"):
            part.ClearField(name)
    for name in _PARAMETERS:
        part.parameters.pop(name, None)
    return part


def suits(loaded: ModelConfig, desired: ModelConfig) -> bool:
    """Return whether instances that were loaded by one complete configuration can serve by another."""
    most, size = loaded.max_batch_size, desired.max_batch_size
    return bool((size == most or 0 < size < most) and loaded_part(loaded) == loaded_part(desired))


def completed_like(declared: ModelConfig, completed: ModelConfig, desired: ModelConfig) -> ModelConfig | None:
    """Return `desired` completed as `declared` was, where they differ only in what may change in place.

    Return None if the model's files are needed: other fields differ, or a declared one is autofilled.
    """
    same_batch = desired.max_batch_size == declared.max_batch_size
    if loaded_part(declared) != loaded_part(desired):
        return None
    if not same_batch and not 0 < desired.max_batch_size <= completed.max_batch_size:
        return None
    if declared.HasField("dynamic_batching") and not desired.HasField("dynamic_batching"):
        return None
    result = ModelConfig()
    result.CopyFrom(completed)
    result.version_policy.CopyFrom(desired.version_policy)
    for name in _PARAMETERS:
        result.parameters.pop(name, None)
        if name in desired.parameters:
            result.parameters[name].CopyFrom(desired.parameters[name])
    if desired.instance_group != declared.instance_group:
        del result.instance_group[:]
        result.instance_group.extend(desired.instance_group)
    if desired.HasField("dynamic_batching"):
        result.dynamic_batching.CopyFrom(desired.dynamic_batching)
    if not same_batch:
        result.max_batch_size = desired.max_batch_size
        if result.HasField("dynamic_batching") and not desired.HasField("dynamic_batching"):
            result.dynamic_batching.ClearField("preferred_batch_size")  # it was the maximum, which is another now
    return result


def instance_changes(
    loaded: Sequence[InstancePlacement], desired: Sequence[InstancePlacement]
) -> tuple[list[InstancePlacement], list[int]]:
    """Return the instances to load next to the loaded ones, and which of these (by index) to remove.

    An instance stays where a desired one is on its device and its group differs only in name and count; of too many
    the last ones go. An added instance has a name that no remaining one has.
    """
    missing = Counter(placement.alike for placement in desired)
    removed: list[int] = []
    names: set[str] = set()
    for index, placement in enumerate(loaded):
        if missing[placement.alike]:
            missing[placement.alike] -= 1
            names.add(placement.name)
        else:
            removed.append(index)
    added: list[InstancePlacement] = []
    # First those with a name of their own, so that none is used twice while another is free.
    for placement in sorted(desired, key=lambda placement: placement.name in names):
        if missing[placement.alike]:
            missing[placement.alike] -= 1
            added.append(placement)
    return added, removed
