"""Agreement of a configuration with a model of trees, and what a configuration lacks. Pure."""

from collections.abc import Sequence
from math import prod
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.modelconfig import config_type, datatypes
from argosy_runtime.modelconfig.shapes import WILDCARD, full_shape, shape_text

INPUT: Final = "input__0"
OUTPUT: Final = "output__0"
SHAPLEY: Final = "treeshap_output"
_FP32: Final = "FP32"


def completed(config: ModelConfig, features: int, width: int) -> ModelConfig:
    """Return a copy of `config` with the input and the output that it lacks."""
    result = ModelConfig()
    result.CopyFrom(config)
    rows = [] if config.max_batch_size > 0 else [WILDCARD]
    if not config.input:
        result.input.add(name=INPUT, data_type=config_type(_FP32), dims=[*rows, features])
    if not config.output:
        result.output.add(name=OUTPUT, data_type=config_type(_FP32), dims=[*rows, width])
    return result


def check_kind(config: ModelConfig, kind: str, instance: str) -> None:
    """Raise ServingError (INVALID_ARG) for an instance that is to be on a GPU."""
    if kind != "KIND_CPU":
        raise invalid(
            f"model instance '{instance}' is of {kind}, and this server computes trees on CPUs alone; give model "
            f"'{config.name}' instance_group [ {{ kind: KIND_CPU }} ]"
        )


def checked(config: ModelConfig, features: int, widths: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a row's answer, without dimensions of 1: Triton's backend leaves them out.

    `features`: the columns of the model's input. `widths`: how many values a row may be answered with, the usual
    number first. Raises ServingError where configuration and model differ, naming the tensor and both sides.
    """
    if any(output.name == SHAPLEY for output in config.output):
        raise unsupported(
            f"model '{config.name}': output '{SHAPLEY}' is not supported by this server; leave it out, and compute "
            "Shapley values where the model was trained, or in a model of backend 'python'"
        )
    _check_one(config, config.input, INPUT, "input")
    _check_one(config, config.output, OUTPUT, "output")
    _check_input(config, config.input[0], features)
    return _columns(config, config.output[0], widths)


def _check_one(config: ModelConfig, tensors: Sequence[ModelInput | ModelOutput], name: str, side: str) -> None:
    if [tensor.name for tensor in tensors] != [name]:
        names = ", ".join(f"'{tensor.name}'" for tensor in tensors) or "none"
        raise invalid(f"model '{config.name}' has {side}s {names}, and a model of trees has one {side} '{name}'")
    if tensors[0].data_type != config_type(_FP32):
        configured = datatypes.config_name(tensors[0].data_type)
        raise invalid(f"model '{config.name}', {side} '{name}': data_type is {configured}, expected TYPE_FP32")


def _check_input(config: ModelConfig, entry: ModelInput, features: int) -> None:
    for field in ("optional", "allow_ragged_batch", "is_shape_tensor", "is_non_linear_format_io"):
        if getattr(entry, field):
            raise invalid(f"model '{config.name}', input '{INPUT}': {field} is set, and a model of trees takes rows")
    shape = _full_shape(config, entry)
    if len(shape) != 2 or shape[1] not in (features, WILDCARD):
        raise invalid(
            f"model '{config.name}', input '{INPUT}': the model has {features} features, so its input is "
            f"[-1,{features}], but the model configuration specifies {_described(config, shape)}"
        )


def _columns(config: ModelConfig, entry: ModelOutput, widths: Sequence[int]) -> tuple[int, ...]:
    shape = _full_shape(config, entry)
    columns = tuple(widths[0] if column == WILDCARD else column for column in shape[1:])
    if not shape or prod(columns) not in widths:
        raise invalid(
            f"model '{config.name}', output '{OUTPUT}': the model answers a row with {' or '.join(map(str, widths))} "
            f"value{'' if widths == (1,) else 's'}, so its output is "
            f"{' or '.join(f'[-1,{width}]' for width in widths)}, but the model configuration specifies "
            f"{_described(config, shape)}"
        )
    return tuple(column for column in columns if column != 1)


def _full_shape(config: ModelConfig, entry: ModelInput | ModelOutput) -> Sequence[int]:
    dims = list(entry.reshape.shape if entry.HasField("reshape") else entry.dims)
    return full_shape(dims, config.max_batch_size)


def _described(config: ModelConfig, shape: Sequence[int]) -> str:
    note = " (its dims after the dimension of the batch, as max_batch_size > 0)" if config.max_batch_size > 0 else ""
    return f"{shape_text(shape)}{note}"
