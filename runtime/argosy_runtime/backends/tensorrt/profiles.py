"""The profile that a batch runs under, and why a batch fits none. Pure."""

from collections.abc import Mapping, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

from .signature import Profile, Range, Shape

NONE: tuple[str, int] = ("default", 0)


def configured(group: ModelInstanceGroup | None) -> list[tuple[str, int]]:
    """Return the names and indices of the profiles that a group of instances uses. Each index once."""
    names = list(group.profile) if group is not None else []
    by_index: dict[int, str] = {}
    for name in names:
        by_index.setdefault(int(name), name)
    return [(name, index) for index, name in sorted(by_index.items())] or [NONE]


def group_of(config: ModelConfig, instance: str) -> ModelInstanceGroup | None:
    """Return the group of an instance, which is called `<group>_<number>`."""
    group_name = instance.rpartition("_")[0]
    return next((group for group in config.instance_group if group.name == group_name), None)


def chosen(
    profiles: Sequence[Profile], shapes: Mapping[str, Shape], values: Mapping[str, Shape]
) -> tuple[Profile, bool]:
    """Return the profile whose best shapes are nearest to the batch's, and whether the batch fits it.

    The distance is the sum over all dimensions; of equal ones the first profile wins. Where none fits it is the
    first, as in Triton.
    """
    near = [
        (distance, index)
        for index, profile in enumerate(profiles)
        if (distance := profile.distance(shapes, values)) is not None
    ]
    return (profiles[min(near)[1]], True) if near else (profiles[0], False)


def problem(profile: Profile, name: str, shape: Shape) -> str | None:
    """Return why an input's full shape does not fit a profile, in Triton's words; None where it fits."""
    allowed = profile.shapes[name]
    if len(shape) != len(allowed.best):
        return f"model expected {len(allowed.best)} dimensions but received {len(shape)} dimensions"
    for axis, (low, size, high) in enumerate(zip(allowed.least, shape, allowed.most, strict=True)):
        if not low <= size <= high:
            return f"model expected the shape of dimension {axis} to be between {low} and {high} but received {size}"
    return None


def value_problem(allowed: Range, values: Shape) -> str | None:
    """Return why the values of a shape tensor do not fit, in Triton's words; None where they fit."""
    if len(values) != len(allowed.best):
        return f"mismatch between the number of shape values. Expecting {len(allowed.best)}. Got {len(values)}"
    for index, (low, value, high) in enumerate(zip(allowed.least, values, allowed.most, strict=True)):
        if not low <= value <= high:
            return f"The shape value at index {index} is expected to be in range from {low} to {high}, Got: {value}"
    return None
