"""The model in general: its name, platform and backend, maximum batch size, versions, cached responses, metrics."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.modelfiles import ENSEMBLE, is_inside, platforms_of
from argosy_runtime.modelconfig.versions import none_available


def check_name(config: ModelConfig) -> Iterator[Violation]:
    """Check that there is a name."""
    if not config.name:
        yield Violation("name", "model configuration must specify 'name'")


def check_platform(config: ModelConfig) -> Iterator[Violation]:
    """Check that a backend exists, an ensemble has none, and a known backend goes with one of its platforms."""
    if not config.backend and config.platform != ENSEMBLE:
        yield Violation("platform", f"unexpected platform type '{config.platform}' for {config.name}")
    if config.backend and config.platform == ENSEMBLE:
        message = f"Ensemble model '{config.name}' must have platform type '{ENSEMBLE}' and empty backend type"
        yield Violation("backend", message)
        return
    allowed = platforms_of(config.backend)
    if config.platform and allowed and config.platform not in allowed:
        message = f"unexpected 'platform' and 'backend' pair, got:{config.platform}, {config.backend}"
        yield Violation("platform", message)


def check_files(config: ModelConfig) -> Iterator[Violation]:
    """Check that the files to open lie in the folder of their version, whatever backend opens them."""
    named = {"default_model_filename": config.default_model_filename}
    named |= {f'cc_model_filenames["{key}"]': name for key, name in sorted(config.cc_model_filenames.items())}
    for path, name in named.items():
        if not is_inside(name):
            message = f"'{name}' of model '{config.name}' must be a path inside the folder of its version"
            yield Violation(path, message)


def check_batch_size(config: ModelConfig) -> Iterator[Violation]:
    """Check that max_batch_size is 0 (no batching) or more."""
    if config.max_batch_size < 0:
        message = f"'max_batch_size' must be non-negative value for {config.name}"
        yield Violation("max_batch_size", message)


def check_version_policy(config: ModelConfig) -> Iterator[Violation]:
    """Check that `latest` has at least one version and `specific` names at least one."""
    policy = config.version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "latest" and policy.latest.num_versions == 0:
        yield Violation("version_policy.latest.num_versions", none_available(config.name))
    if choice == "specific" and not policy.specific.versions:
        yield Violation("version_policy.specific.versions", none_available(config.name))


def check_response_cache(config: ModelConfig) -> Iterator[Violation]:
    """Check that no decoupled model caches responses: it answers any number of times."""
    if config.model_transaction_policy.decoupled and config.response_cache.enable:
        yield Violation(
            "response_cache.enable",
            f"Response Cache does not currently support model {config.name} with 'decoupled' transaction "
            "policy. Please disable the response cache.",
        )


def check_metrics(config: ModelConfig) -> Iterator[Violation]:
    """Check that every control names a family and has its buckets."""
    for index, control in enumerate(config.model_metrics.metric_control):
        path = f"model_metrics.metric_control[{index}]"
        if not control.HasField("metric_identifier"):
            yield Violation(path, "metric control must specify 'metric_identifier'")
        elif not control.metric_identifier.family:
            message = "metric identifier must specify non-empty 'family'"
            yield Violation(f"{path}.metric_identifier.family", message)
        if not control.HasField("histogram_options"):
            yield Violation(path, "metric control must specify 'histogram_options'")
        elif not control.histogram_options.buckets:
            message = "histogram options must specify non-empty 'buckets'"
            yield Violation(f"{path}.histogram_options.buckets", message)
