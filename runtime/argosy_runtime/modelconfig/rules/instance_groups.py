"""Instance groups: kinds against GPUs, TensorRT profiles and the rate limiter's resources."""

from collections.abc import Iterator, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

from argosy_runtime.modelconfig.errors import Violation

_TENSORRT = "tensorrt_plan"
_WITHOUT_GPUS = (ModelInstanceGroup.KIND_MODEL, ModelInstanceGroup.KIND_CPU)


def check_groups(config: ModelConfig) -> Iterator[Violation]:
    """Yield the violations of groups that do not depend on the machine."""
    if config.HasField("ensemble_scheduling"):
        return
    for index, group in enumerate(config.instance_group):
        path = f"instance_group[{index}]"
        if group.kind in _WITHOUT_GPUS and group.gpus:
            kind = ModelInstanceGroup.Kind.Name(group.kind)
            message = f"{_label(config, group)} has kind {kind} but specifies one or more GPUs"
            yield Violation(f"{path}.gpus", message)
        yield from _check_profiles(config, path, group)


def check_placement(config: ModelConfig, gpus: Sequence[int]) -> list[Violation]:
    """Return the violations of normalized groups on a machine with these GPUs."""
    violations: list[Violation] = []
    if config.HasField("ensemble_scheduling"):
        return violations
    if not config.instance_group:
        message = f"must specify one or more 'instance group's for {config.name}"
        violations.append(Violation("instance_group", message))
    for group in config.instance_group:
        # Triton's words name the group: clients see them as they are.
        violations += (
            Violation("", f"{_label(config, group)} {message}") for message in _check_on_machine(group, gpus)
        )
    return violations


def _label(config: ModelConfig, group: ModelInstanceGroup) -> str:
    return f"instance group {group.name} of model {config.name}"


def _check_on_machine(group: ModelInstanceGroup, gpus: Sequence[int]) -> Iterator[str]:
    if group.kind == ModelInstanceGroup.KIND_AUTO:
        yield "has unexpected kind KIND_AUTO"
    if group.kind != ModelInstanceGroup.KIND_GPU:
        return
    if not group.gpus:
        reason = "specifies no GPUs" if gpus else "no GPUs are available"
        yield f"has kind KIND_GPU but {reason}"
    for gpu in group.gpus:
        if gpu not in gpus:
            present = ", ".join(str(one) for one in sorted(gpus)) or "none"
            yield f"specifies invalid or unsupported gpu id {gpu}. GPUs are: {present}"


def _check_profiles(config: ModelConfig, path: str, group: ModelInstanceGroup) -> Iterator[Violation]:
    if not group.profile:
        return
    label = f"{_label(config, group)} and platform {config.platform}"
    if config.platform != _TENSORRT:
        # Triton leaves out the space before "specifies" here, and only here.
        message = f"{label}specifies profile field which is only supported for TensorRT models"
        yield Violation(f"{path}.profile", message)
        return
    for index, profile in enumerate(group.profile):
        if not (profile.isascii() and profile.isdigit()):
            yield Violation(
                f"{path}.profile[{index}]",
                f"{label} specifies invalid profile {profile}. The field should contain the string "
                "representation of a non-negative integer.",
            )


def check_rate_limiter(config: ModelConfig) -> Iterator[Violation]:
    """Check that a resource is either the server's or each device's, the same in every group."""
    scopes: dict[str, bool] = {}
    for index, group in enumerate(config.instance_group):
        for number, resource in enumerate(group.rate_limiter.resources):
            if scopes.setdefault(resource.name, getattr(resource, "global")) == getattr(resource, "global"):
                continue
            yield Violation(
                f"instance_group[{index}].rate_limiter.resources[{number}].global",
                f'Resource "{resource.name}" is present as both global and device-specific resource in the '
                "model configuration.",
            )
