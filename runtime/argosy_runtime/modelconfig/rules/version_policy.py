"""A version policy that could never serve anything."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.versions import none_available


def check_version_policy(config: ModelConfig) -> Iterator[Violation]:
    """`latest` wants at least one version and `specific` names at least one."""
    policy = config.version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "latest" and policy.latest.num_versions == 0:
        yield Violation("version_policy.latest.num_versions", none_available(config.name))
    if choice == "specific" and not policy.specific.versions:
        yield Violation("version_policy.specific.versions", none_available(config.name))
