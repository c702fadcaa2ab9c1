"""Routed models among the models of a server: their configuration from their variants', and how they follow these."""

from collections.abc import Mapping, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from argosy_runtime.errors import invalid, unavailable
from argosy_runtime.modelconfig.parameters.variants import Variant, variant_routing

from .preparing import Prepared
from .records import ModelRecord
from .serving.routed import AnyVariant, ServedVariants


def compile_version(prepared: Prepared, version: int, records: Mapping[str, ModelRecord]) -> ServedVariants:
    """Return a routed model's version on the variants that serve now.

    Raises ServingError where none does, or they differ. Its counters and its regime go on from the version that serves
    now.
    """
    name = prepared.config.name
    routing = variant_routing(prepared.config)
    models = [_served(name, records, variant) for variant in routing.variants]
    present = [model for model in models if model is not None]
    if not present:
        reasons = [_why_not(records, variant) for variant in routing.variants]
        raise unavailable(f"model '{name}' has no variant that is loaded: {'; '.join(reasons)}")
    config = _completed(prepared.config, present)
    old = records[name].answering.get(str(version))
    statistics = old.statistics if old is not None else prepared.new_statistics()
    served = ServedVariants(prepared.with_config(config), version, config, routing, models, statistics)
    if isinstance(old, ServedVariants):
        served.runner.continue_from(old.runner)
    return served


def follow(record: ModelRecord, prepared: Prepared, version: int, records: Mapping[str, ModelRecord]) -> bool:
    """Put a serving version on the variants that serve now. Return False where it must be made again, or taken down."""
    served = record.answering.get(str(version))
    if not isinstance(served, ServedVariants) or not record.desired:
        return False
    models = [_served(record.name, records, variant) for variant in served.routing.variants]
    present = [model for model in models if model is not None]
    if not present or _completed(prepared.config, present) != served.config:
        return False
    served.follow(models)
    return True


def _served(name: str, records: Mapping[str, ModelRecord], variant: Variant) -> AnyVariant | None:
    record = records.get(variant.model)
    served = record.answering.get("" if variant.version < 0 else str(variant.version)) if record is not None else None
    if served is not None and not isinstance(served, AnyVariant):
        raise invalid(f"variant '{variant.model}' of model '{name}' must be a model, not an ensemble or a routed model")
    return served


def _why_not(records: Mapping[str, ModelRecord], variant: Variant) -> str:
    record = records.get(variant.model)
    version = f" version {variant.version}" if variant.version >= 0 else ""
    return f"'{variant.model}'{version}: {(record.failure if record is not None else '') or 'not loaded'}"


def _completed(declared: ModelConfig, models: Sequence[AnyVariant]) -> ModelConfig:
    """Return the configuration with the variants' tensors and smallest batch. Raises ServingError if they differ."""
    config = ModelConfig()
    config.CopyFrom(declared)
    first = models[0].config
    for model in models[1:]:
        _compare(config.name, models[0], model)
    if not config.input:
        config.input.extend(map(_plain_input, first.input))
    if not config.output:
        config.output.extend(map(_plain_output, first.output))
    for tensor in (*config.input, *config.output):
        tensor.ClearField("reshape")  # the variant's own
    config.max_batch_size = min(model.config.max_batch_size for model in models)
    config.model_transaction_policy.decoupled = any(model.decoupled for model in models)
    return config


def _plain_input(tensor: ModelInput) -> ModelInput:
    return ModelInput(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, optional=tensor.optional)


def _plain_output(tensor: ModelOutput) -> ModelOutput:
    return ModelOutput(
        name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, label_filename=tensor.label_filename
    )


def _compare(name: str, one: AnyVariant, other: AnyVariant) -> None:
    """Raise ServingError where clients could tell two variants apart by their tensors."""
    if bool(one.config.max_batch_size) != bool(other.config.max_batch_size):
        raise invalid(
            f"variants of model '{name}' differ: '{one.name}' has max_batch_size {one.config.max_batch_size}, "
            f"'{other.name}' {other.config.max_batch_size}; either all of them or none may have a batch dimension"
        )
    for what, mine, theirs in (
        ("input", one.config.input, other.config.input),
        ("output", one.config.output, other.config.output),
    ):
        left = {tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in mine if not _is_optional(tensor)}
        right = {tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in theirs if not _is_optional(tensor)}
        for tensor in sorted(left.keys() | right.keys()):
            if left.get(tensor) != right.get(tensor):
                raise invalid(
                    f"variants of model '{name}' differ: {what} '{tensor}' of '{one.name}' is not that of "
                    f"'{other.name}'; declare the same tensors for all variants"
                )


def _is_optional(tensor: ModelInput | ModelOutput) -> bool:
    return isinstance(tensor, ModelInput) and tensor.optional
