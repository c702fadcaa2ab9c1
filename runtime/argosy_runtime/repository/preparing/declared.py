"""Configurations as they are declared: the model's, and those that versions have of their own."""

from collections.abc import Iterator
from contextlib import suppress

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig import ConfigError, parse_json, parse_text
from argosy_runtime.modelconfig.parameters import adapters, traffic, variants
from argosy_runtime.modelconfig.rules import check_name_of_folder
from argosy_runtime.modelconfig.versions import policy_of, select
from argosy_runtime.repository.folders.layout import VERSION_CONFIG_FILE, ModelFolder
from argosy_runtime.repository.options import RepositoryOptions


def declared_config(folder: ModelFolder, override: str | None) -> ModelConfig:
    """Return the model's configuration: the override (JSON) of a load request, or config.pbtxt, or an empty one.

    A model whose folder has another name keeps its own. Raises ConfigError.
    """
    config = _written_config(folder, override)
    if folder.renamed:
        config.name = folder.name
    return config


def _written_config(folder: ModelFolder, override: str | None) -> ModelConfig:
    if override is not None:
        return parse_json(override)
    if folder.config_text is None:
        return ModelConfig()
    return parse_text(folder.config_text, str(folder.config_path))


def declared_version(folder: ModelFolder, version: int, model: ModelConfig) -> ModelConfig:
    """Return the configuration that a version has of its own, with what only `model`, the model's, decides.

    Raises ConfigError.
    """
    problem = folder.version_problems.get(version)
    if problem is not None:
        raise ConfigError(problem)
    path = folder.version_path(version) / VERSION_CONFIG_FILE
    config = parse_text(folder.version_configs[version], str(path))
    if folder.renamed:
        config.name = folder.name
    if config.name and config.name != folder.name:
        raise ConfigError(f"{path} is the configuration of a model '{config.name}'; its name must be '{folder.name}'")
    config.ClearField("version_policy")
    config.parameters.pop(traffic.PARAMETER, None)
    config.MergeFrom(deciding_part(model, folder.name))
    return config


def deciding_part(model: ModelConfig, folder_name: str) -> ModelConfig:
    """Return what a model's configuration decides for versions with one of their own. Raises ConfigError.

    Its name, which of its versions are served, and how requests are divided among them.
    """
    for violation in check_name_of_folder(model, folder_name):
        raise ConfigError(str(violation))
    part = ModelConfig(name=folder_name, version_policy=policy_of(model))
    if traffic.version_traffic(model) is not None:
        part.parameters[traffic.PARAMETER].CopyFrom(model.parameters[traffic.PARAMETER])
    return part


def selected(folder: ModelFolder, model: ModelConfig) -> list[int]:
    """Return the versions of a folder that the model's configuration selects, ascending."""
    return select(policy_of(model), folder.versions)


def declared_versions(folder: ModelFolder, override: str | None) -> Iterator[ModelConfig]:
    """Yield the configurations that versions are served by, each once; those that cannot be read are left out."""
    try:
        model = declared_config(folder, override)
        versions = selected(folder, model)
    except ConfigError:
        return
    if not folder.own_configs.issuperset(versions) or not versions:
        yield model
    for version in versions:
        if version in folder.own_configs:
            with suppress(ConfigError):
                yield declared_version(folder, version, model)


def steps_of(config: ModelConfig) -> frozenset[str]:
    """Return the models that a model of others runs: an ensemble's steps, variants, an adapter's base model.

    Raises ConfigError.
    """
    if adapters.is_adapter(config):
        return frozenset({adapters.base_of(config)})
    if variants.is_routed(config):
        return frozenset(variant.model for variant in variants.variant_routing(config).variants)
    return frozenset(step.model_name for step in config.ensemble_scheduling.step)


def load_timeout(config: ModelConfig, options: RepositoryOptions) -> float:
    """Return the seconds that an instance may take to load.

    The parameter LOAD_TIMEOUT_SECONDS, or the server's flag.
    """
    if "LOAD_TIMEOUT_SECONDS" not in config.parameters:
        return options.load_timeout
    text = config.parameters["LOAD_TIMEOUT_SECONDS"].string_value
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise invalid(f"parameter LOAD_TIMEOUT_SECONDS of model '{config.name}' must be a number above 0, not '{text}'")
    return seconds
