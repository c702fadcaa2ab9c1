"""Version numbers as text, and the version folders that a policy serves."""

from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelVersionPolicy

from .shapes import INT64_MAX


def number_of(version: str) -> int | None:
    """Return the number of a version's text; None where it is no number, or above 64 bits."""
    try:
        number = int(version)
    except ValueError:  # no number, or one of thousands of digits
        return None
    return number if number <= INT64_MAX else None


def policy_of(config: ModelConfig) -> ModelVersionPolicy:
    """Return a configuration's policy: without one the latest version is served, as in Triton."""
    if config.HasField("version_policy"):
        return config.version_policy
    return ModelVersionPolicy(latest=ModelVersionPolicy.Latest(num_versions=1))


def select(policy: ModelVersionPolicy, available: Sequence[int]) -> list[int]:
    """Return the versions to serve, ascending. A policy without a choice means all of them, as in Triton.

    Versions that `specific` names and that do not exist are left out.
    """
    choice = policy.WhichOneof("policy_choice")
    existing = sorted(set(available))
    if choice == "latest":
        count = policy.latest.num_versions
        return existing[-count:] if count else []
    if choice == "specific":
        named = set(policy.specific.versions)
        return [version for version in existing if version in named]
    return existing


def missing(policy: ModelVersionPolicy, available: Sequence[int]) -> list[int]:
    """Return the versions `specific` names that have no folder, in the order they are named."""
    existing = set(available)
    return [version for version in policy.specific.versions if version not in existing]


def none_available(model: str) -> str:
    """Return the error of a policy that leaves nothing to serve."""
    return f"at least one version must be available under the version policy of model '{model}'"
