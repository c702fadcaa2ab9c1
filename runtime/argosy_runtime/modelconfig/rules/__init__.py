"""Rules of a configuration, one module for each part of it. All violations are reported, not just the first.

A rule is a generator `config → violations`. The rules are in Triton's order, so the first violation is the one that
Triton reports. Configurations are checked after `defaults.normalize`, which fills in what may be left out.
"""

from collections.abc import Callable, Iterator, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.parameters.chat import check_chat
from argosy_runtime.modelconfig.parameters.traffic import check_traffic

from .batch_io import check_batch_io
from .control_inputs import check_control_inputs
from .dynamic_batching import check_batch_strategy, check_dynamic_batching, check_queue_policies
from .ensembles import check_ensemble
from .instance_groups import check_groups, check_placement, check_rate_limiter
from .model import (
    check_batch_size,
    check_files,
    check_metrics,
    check_name,
    check_platform,
    check_response_cache,
    check_version_policy,
)
from .sequence_batching import check_sequence_batching, check_states
from .sizes import check_numbers, check_sizes
from .tensors import check_tensors, check_warmup

Rule = Callable[[ModelConfig], Iterator[Violation]]

# What does not depend on what a backend's own autofill adds: Triton checks it before the model is opened.
_STRUCTURE: tuple[Rule, ...] = (
    check_numbers,
    check_name,
    check_platform,
    check_batch_size,
    check_version_policy,
    check_files,
    check_traffic,
    check_dynamic_batching,
    check_queue_policies,
    check_batch_strategy,
    check_sequence_batching,
    check_control_inputs,
    check_ensemble,
    check_response_cache,
    check_metrics,
    check_sizes,
)
_TENSORS: tuple[Rule, ...] = (check_tensors, check_batch_io, check_chat)
_INSTANCES: tuple[Rule, ...] = (check_groups, check_rate_limiter, check_states, check_warmup)


def check(config: ModelConfig, folder_name: str | None = None) -> list[Violation]:
    """Return all violations of a complete configuration; with a folder, also of the model's name in its folder."""
    return [
        *check_structure(config, folder_name),
        *_run((*_TENSORS, *_INSTANCES), config),
    ]


def check_structure(config: ModelConfig, folder_name: str | None = None) -> list[Violation]:
    """Return the violations that are certain before the backend has completed the inputs and outputs."""
    violations = _run(_STRUCTURE, config)
    if folder_name is not None:
        violations.extend(check_name_of_folder(config, folder_name))
    return violations


def check_name_of_folder(config: ModelConfig, folder_name: str) -> Iterator[Violation]:
    """Check that a name is that of the model's folder."""
    if config.name and config.name != folder_name:
        message = (
            f"unexpected directory name '{folder_name}' for model '{config.name}', directory name must equal model name"
        )
        yield Violation("name", message)


def _run(rules: Sequence[Rule], config: ModelConfig) -> list[Violation]:
    return [violation for rule in rules for violation in rule(config)]


__all__ = ["check", "check_name_of_folder", "check_placement", "check_structure"]
