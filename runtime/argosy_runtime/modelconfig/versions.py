"""Versions: their numbers as text, and which of a model's version folders a policy serves."""

from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelVersionPolicy

from .errors import ConfigError
from .shapes import INT64_MAX


def number_of(version: str) -> int | None:
    """Return the number that a version's text is; None where it is none, or above 64 bits."""
    try:
        number = int(version)
    except ValueError:  # no number, or one of thousands of digits
        return None
    return number if number <= INT64_MAX else None


def select(policy: ModelVersionPolicy, available: Sequence[int]) -> list[int]:
    """Return the versions to serve, ascending. A policy that makes no choice means all of them, as in Triton.

    Versions that `specific` names and that do not exist are left out.
    """
    choice = policy.WhichOneof("policy_choice")
    existing = sorted(set(available))
    if choice == "latest":
        count = policy.latest.num_versions
        return existing[-count:] if count else []
    if choice == "specific":
        wanted = set(policy.specific.versions)
        return [version for version in existing if version in wanted]
    return existing


def missing(policy: ModelVersionPolicy, available: Sequence[int]) -> list[int]:
    """Return the versions `specific` names that have no folder, in the order they are named."""
    existing = set(available)
    return [version for version in policy.specific.versions if version not in existing]


def none_available(model: str) -> str:
    """Return what is said where a policy leaves nothing to serve."""
    return f"at least one version must be available under the version policy of model '{model}'"


def require(config: ModelConfig, available: Sequence[int]) -> list[int]:
    """As `select`, for a normalized configuration; ConfigError where nothing is left to serve."""
    versions = select(config.version_policy, available)
    if not versions:
        raise ConfigError(none_available(config.name))
    return versions
