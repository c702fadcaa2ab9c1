"""Dynamic batching: preferred sizes, priorities and what preserve_ordering rules out; the queue of other models."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelDynamicBatching, ModelQueuePolicy

from argosy_runtime.modelconfig.errors import ConfigError, Violation
from argosy_runtime.modelconfig.parameters.queue_policies import PARAMETER, queue_policies

STRATEGY = "BATCH_STRATEGY"
"""The parameter that names a Python file with the model's batching strategy."""
_PATH = "dynamic_batching"


def check_dynamic_batching(config: ModelConfig) -> Iterator[Violation]:
    """Yield the violations of `dynamic_batching`, where it is the scheduler."""
    if config.HasField("dynamic_batching"):
        yield from _check_preferred(config)
        yield from _check_priorities(config.name, config.dynamic_batching, _PATH)
        yield from _check_ordering(config)


def check_queue_policies(config: ModelConfig) -> Iterator[Violation]:
    """Yield the violations of the parameter `queue_policies`."""
    path = f'parameters["{PARAMETER}"]'
    try:
        policies = queue_policies(config)
    except ConfigError as error:
        yield Violation(path, str(error))
        return
    if policies is not None:
        yield from _check_priorities(config.name, policies, path)


def check_batch_strategy(config: ModelConfig) -> Iterator[Violation]:
    """Yield a violation where a batching strategy is named and nothing puts requests together."""
    if STRATEGY in config.parameters and not config.HasField("dynamic_batching"):
        message = f"model '{config.name}', parameter '{STRATEGY}': only dynamic_batching puts requests together"
        yield Violation(f'parameters["{STRATEGY}"]', f"{message}; set that, too")


def _check_preferred(config: ModelConfig) -> Iterator[Violation]:
    for index, size in enumerate(config.dynamic_batching.preferred_batch_size):
        path = f"{_PATH}.preferred_batch_size[{index}]"
        if size <= 0:
            message = f"dynamic batching preferred size must be positive for {config.name}"
            yield Violation(path, message)
        elif size > config.max_batch_size:
            message = f"dynamic batching preferred size must be <= max batch size for {config.name}"
            yield Violation(path, message)


def _check_priorities(model: str, batching: ModelDynamicBatching, path: str) -> Iterator[Violation]:
    levels = batching.priority_levels
    if levels == 0:
        return
    if not 1 <= batching.default_priority_level <= levels:
        message = f"default priority level must be in range [1, {levels}] for {model}"
        yield Violation(f"{path}.default_priority_level", message)
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            yield Violation(
                f"{path}.priority_queue_policy[{level}]",
                f"priority queue policy must have priority level in range [1, {levels}] for {model}",
            )


def _check_ordering(config: ModelConfig) -> Iterator[Violation]:
    batching = config.dynamic_batching
    if not batching.preserve_ordering:
        return
    if batching.priority_levels > 1:
        yield Violation(
            f"{_PATH}.priority_levels",
            f"Only one priority level is allowed when 'preserve_ordering' is true for {config.name}",
        )
    policies = {"default_queue_policy": batching.default_queue_policy}
    for level in sorted(batching.priority_queue_policy):
        policies[f"priority_queue_policy[{level}]"] = batching.priority_queue_policy[level]
    for where, policy in policies.items():
        if policy.default_timeout_microseconds and policy.timeout_action == ModelQueuePolicy.DELAY:
            yield Violation(
                f"{_PATH}.{where}.timeout_action",
                f"Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {config.name}",
            )
