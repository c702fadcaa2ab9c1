"""The response cache against the transaction policy. (Against sequence batching: see there.)"""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation


def check_response_cache(config: ModelConfig) -> Iterator[Violation]:
    """A decoupled model answers any number of times: its responses are not cached."""
    if config.model_transaction_policy.decoupled and config.response_cache.enable:
        yield Violation(
            "response_cache.enable",
            f"Response Cache does not currently support model {config.name} with 'decoupled' transaction "
            "policy. Please disable the response cache.",
        )
