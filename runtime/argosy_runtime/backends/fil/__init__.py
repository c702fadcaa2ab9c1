"""The `fil` backend: boosted trees and forests of XGBoost, LightGBM, scikit-learn and others, run by Treelite on CPUs.

What may live here: the settings of such a model, its file, and running it. The configuration is that of Triton's FIL
backend: an input `input__0`, an output `output__0`, both FP32, and the parameters `model_type`, `is_classifier`
(`output_class` before 25.09), `predict_proba`, `threshold`, `xgboost_allow_unknown_field` and `cpu_nthread`. Its other
parameters choose how a GPU, or an earlier release of it, computes; they have no effect.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batching import BatchedInstance
from argosy_runtime.backends.contract import Host, InstanceSpec

from . import forest, validation
from .running import ForestFramework
from .settings import Settings


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the input and the output as the file says, if they are missing.

    Raises ServingError: INVALID_ARG for a wrong parameter, UNAVAILABLE without the file, INTERNAL where it cannot be
    read.
    """
    if config.input and config.output:
        return config
    settings = Settings.read(config)
    opened = forest.open_forest(settings, version_dir, config)
    return validation.completed(config, opened.features, settings.widths(opened.classes)[0])


def load(spec: InstanceSpec, host: Host) -> BatchedInstance:
    """Open the file. Raises ServingError, as `complete_config` does, and where configuration and file disagree."""
    validation.check_kind(spec.config, spec.kind, spec.name)
    settings = Settings.read(spec.config)
    opened = forest.open_forest(settings, spec.version_dir, spec.config)
    columns = validation.checked(spec.config, opened.features, settings.widths(opened.classes))
    return BatchedInstance(spec.config, spec.version, ForestFramework(spec.config.name, opened, settings, columns))


__all__ = ["complete_config", "load"]
