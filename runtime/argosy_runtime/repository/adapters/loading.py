"""Adapters among the models of a server: loaded into their base model, and again into each that replaces it."""

from collections.abc import Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, unavailable
from argosy_runtime.language.adapter_names import names_adapters
from argosy_runtime.modelconfig.parameters.adapters import BACKEND, LORA_NAME, PARAMETER, SAMPLING, base_of
from argosy_runtime.repository.preparing import Prepared, PreparedModel
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.serving.adapters import AdapterBase, Base, ServedAdapter
from argosy_runtime.repository.serving.routed import ServedVariants
from argosy_runtime.repository.serving.served import ServedModel


async def load(adapter: PreparedModel, version: int, records: Mapping[str, ModelRecord]) -> ServedAdapter:
    """Load a version of an adapter into its base model.

    Raises ServingError where it does not fit, or that model does not serve.
    """
    prepared = adapter.versions[version]
    name, base = prepared.config.name, base_of(prepared.config)
    serving = _serving(base, records)
    model = serving()
    if model is None:
        record = records.get(base)
        why = f": {record.failure}" if record is not None and record.failure else ""
        raise unavailable(f"the base model '{base}' of adapter '{name}' is not loaded{why}")
    config = _config(prepared.config, model)
    old = records[name].answering.get(str(version))
    statistics = old.statistics if old is not None else prepared.new_statistics()
    served = ServedAdapter(prepared, version, config, serving, statistics, _loaded_name(adapter, version))
    await model.add_adapter(served.adapter)
    return served


def follow(record: ModelRecord, prepared: Prepared, version: int, records: Mapping[str, ModelRecord]) -> None:
    """Give a serving adapter the tensors of the version of its base model that serves now."""
    model = _serving(base_of(prepared.config), records)()
    served = record.answering.get(str(version))
    if isinstance(served, ServedAdapter) and model is not None:
        served.follow(model, _config(prepared.config, model))


def _loaded_name(adapter: PreparedModel, version: int) -> str:
    """Return the name by which the base model has a version: the adapter's for the highest one that it has."""
    name = adapter.folder.name
    base = base_of(adapter.versions[version].config)
    others = [v for v, one in adapter.versions.items() if one.is_adapter and base_of(one.config) == base]
    return name if version == max(others) else f"{name}@{version}"


def _serving(base: str, records: Mapping[str, ModelRecord]) -> Base:
    def serving() -> AdapterBase | None:
        record = records.get(base)
        served = record.answering.get("") if record is not None else None
        return served if isinstance(served, ServedModel | ServedVariants) else None

    return serving


def _config(declared: ModelConfig, base: AdapterBase) -> ModelConfig:
    """Return the configuration of an adapter, with the tensors of its base model. Raises ServingError."""
    if not names_adapters(base.config):
        raise invalid(f"model '{base.name}' takes no adapters: it has no input '{LORA_NAME}' or '{SAMPLING}'")
    config = ModelConfig()
    config.CopyFrom(base.config)
    config.name, config.backend = declared.name, BACKEND
    for field in ("instance_group", "model_warmup", "parameters", "version_policy", "cc_model_filenames"):
        config.ClearField(field)
    config.version_policy.CopyFrom(declared.version_policy)
    config.parameters[PARAMETER].string_value = base.name
    return config
