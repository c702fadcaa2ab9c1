"""model_metrics: buckets of the model's own histograms."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation


def check_metrics(config: ModelConfig) -> Iterator[Violation]:
    """Every control names a family and gives its buckets."""
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
