"""What of a configuration may change under a model that serves, without loading it anew.

`instance_group`: instances are loaded beside the others, or finish what they run and go. `dynamic_batching`: the queue
goes on under the new rules. `max_batch_size`: down, and up again to what the instances were loaded with.
`version_policy` says which versions serve, not how. All else a model's instances have read while they loaded.
"""

from collections import Counter
from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from .instances import InstancePlacement

IN_PLACE = ("version_policy", "instance_group", "dynamic_batching", "max_batch_size")


def loaded_part(config: ModelConfig) -> ModelConfig:
    """Return a copy without what may change in place."""
    part = ModelConfig()
    part.CopyFrom(config)
    for name in IN_PLACE:
        # Sequences lie in the batch's places, so its size is theirs.
        if name != "max_batch_size" or not config.HasField("sequence_batching"):
            part.ClearField(name)
    return part


def suits(loaded: ModelConfig, wanted: ModelConfig) -> bool:
    """Return whether instances that were loaded by one complete configuration can serve by another."""
    most, size = loaded.max_batch_size, wanted.max_batch_size
    return bool((size == most or 0 < size < most) and loaded_part(loaded) == loaded_part(wanted))


def completed_like(declared: ModelConfig, completed: ModelConfig, wanted: ModelConfig) -> ModelConfig | None:
    """`wanted` completed as `declared` was, where they differ in no more than what may change in place.

    None where only the model's files can tell: other fields differ, or one that was declared is to be found out.
    """
    same_batch = wanted.max_batch_size == declared.max_batch_size
    if loaded_part(declared) != loaded_part(wanted):
        return None
    if not same_batch and not 0 < wanted.max_batch_size <= completed.max_batch_size:
        return None
    if declared.HasField("dynamic_batching") and not wanted.HasField("dynamic_batching"):
        return None
    result = ModelConfig()
    result.CopyFrom(completed)
    result.version_policy.CopyFrom(wanted.version_policy)
    if wanted.instance_group != declared.instance_group:
        del result.instance_group[:]
        result.instance_group.extend(wanted.instance_group)
    if wanted.HasField("dynamic_batching"):
        result.dynamic_batching.CopyFrom(wanted.dynamic_batching)
    if not same_batch:
        result.max_batch_size = wanted.max_batch_size
        if result.HasField("dynamic_batching") and not wanted.HasField("dynamic_batching"):
            result.dynamic_batching.ClearField("preferred_batch_size")  # it was the maximum, which is another now
    return result


def exchanged(
    held: Sequence[InstancePlacement], wanted: Sequence[InstancePlacement]
) -> tuple[list[InstancePlacement], list[int]]:
    """Return what is to be loaded beside the instances that are held, and which of these (by index) are to go.

    An instance stays where the wanted ones have one on its device whose group is alike but for name and count; of too
    many the last go. One that comes has a name that none has which stays.
    """
    room = Counter(place.alike for place in wanted)
    removed: list[int] = []
    names: set[str] = set()
    for index, place in enumerate(held):
        if room[place.alike]:
            room[place.alike] -= 1
            names.add(place.name)
        else:
            removed.append(index)
    added: list[InstancePlacement] = []
    # First those with a name of their own, so that none is taken twice where there is another.
    for place in sorted(wanted, key=lambda place: place.name in names):
        if room[place.alike]:
            room[place.alike] -= 1
            added.append(place)
    return added, removed
