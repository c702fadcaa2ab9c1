"""Agreement of a configuration with an engine, in Triton's words."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from argosy_runtime.backends.batch_io import batch_input_names, scattered_output_names
from argosy_runtime.errors import internal, invalid, not_found
from argosy_runtime.modelconfig import datatypes
from argosy_runtime.modelconfig.shapes import compatible, full_shape, shape_text

from .signature import Profile, Signature, TensorInfo

Entry: TypeAlias = "ModelInput | ModelOutput"


def check_kind(config: ModelConfig, kind: str) -> None:
    """Raise ServingError where an instance is not to run on one GPU."""
    if kind != "KIND_GPU":
        raise invalid(
            f"unable to load model '{config.name}', TensorRT backend supports only GPU device; give it an instance "
            "group of KIND_GPU"
        )


def check(config: ModelConfig, signature: Signature, used: Sequence[Profile], instance: str) -> None:
    """Raise ServingError where configuration and engine differ, naming the tensor and both sides.

    Every tensor of the engine must be configured.
    """
    if len(config.input) > len(signature.inputs):
        raise invalid(
            f"unable to load model '{config.name}', configuration expects {len(config.input)} inputs, model provides "
            f"at most {len(signature.inputs)}"
        )
    for name in batch_input_names(config):
        if name not in signature.inputs:
            raise not_found(f"input '{name}' not found for {instance}")
    for side, entries, infos in (
        ("input", config.input, signature.inputs),
        ("output", config.output, signature.outputs),
    ):
        for entry in entries:
            _check_one(config, entry, _info(entry.name, infos, side), side, instance)
        configured = {entry.name for entry in entries}
        if side == "input":
            configured.update(batch_input_names(config))
        missing = next((name for name in infos if name not in configured), None)
        if missing is not None:
            raise invalid(f"expected configuration for {side} '{missing}' for {instance}")
    for entry in config.input:
        _check_profiles(config, entry, signature.inputs[entry.name], used)


def _info(name: str, infos: Mapping[str, TensorInfo], side: str) -> TensorInfo:
    if name not in infos:
        raise invalid(f"unexpected inference {side} '{name}', allowed {side}s are: {', '.join(sorted(infos))}")
    return infos[name]


def _check_one(config: ModelConfig, entry: Entry, info: TensorInfo, side: str, instance: str) -> None:
    if not info.linear:
        raise internal(
            f"{side} '{entry.name}' for model '{config.name}' uses a non-linear IO format, which this server does not "
            "lay out; build the engine with linear inputs and outputs"
        )
    if entry.is_non_linear_format_io:
        raise internal(
            f"{side} '{entry.name}' for model '{config.name}' uses a linear IO format, but 'is_non_linear_format_io' "
            "is incorrectly set to true in the model configuration."
        )
    if info.is_shape and not entry.is_shape_tensor:
        raise internal(
            f"{side} '{entry.name}' for model '{config.name}' is a shape tensor but the model configuration doesn't "
            "mark it as a shape tensor."
        )
    if entry.is_shape_tensor and not info.is_shape:
        raise internal(
            f"{side} '{entry.name}' for model '{config.name}' is incorrectly marked as a shape tensor in the model "
            "configuration."
        )
    if info.datatype is None or datatypes.config_type(info.datatype) != entry.data_type:
        raise invalid(
            f"unexpected datatype TYPE_{info.datatype or info.trt_type} for inference {side} '{entry.name}', expecting "
            f"{datatypes.config_name(entry.data_type)} for {instance}"
        )
    if info.is_shape:
        _check_values(config, entry, info)
    elif side == "input" and entry.allow_ragged_batch:
        _check_ragged(config, entry, info)
    elif side == "input" or entry.name not in scattered_output_names(config):
        _check_shape(config, entry, info)


def _check_values(config: ModelConfig, entry: Entry, info: TensorInfo) -> None:
    expected = info.values - (config.max_batch_size > 0)
    if list(entry.dims) not in ([expected], [-1]):
        raise invalid(
            f"unable to load model '{config.name}', shape tensor '{entry.name}': the model expects {expected} shape "
            f"values but the model configuration specifies dims {shape_text(entry.dims)}"
        )


def _check_ragged(config: ModelConfig, entry: Entry, info: TensorInfo) -> None:
    if info.shape != (entry.dims[0],):
        raise invalid(
            f"model '{config.name}', tensor '{entry.name}': for the model to support ragged input, the engine shape is"
            f": {shape_text(info.shape)} while the model config shape is: {shape_text(entry.dims)}"
        )


def _check_shape(config: ModelConfig, entry: Entry, info: TensorInfo) -> None:
    dims = list(entry.reshape.shape if entry.HasField("reshape") else entry.dims)
    full = full_shape(dims, config.max_batch_size)
    if compatible(info.shape, full) or not (info.shape or any(dim != 1 for dim in full)):
        return
    about = f"model '{config.name}', tensor '{entry.name}': "
    note = (
        " dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, "
        f"making complete shape {shape_text(full)})"
        if config.max_batch_size > 0
        else f" dimensions (shape {shape_text(full)})"
    )
    raise invalid(
        f"{about}the model expects {len(info.shape)} dimensions (shape {shape_text(info.shape)}) but the model "
        f"configuration specifies {len(full)}{note}"
    )


def _check_profiles(config: ModelConfig, entry: ModelInput, info: TensorInfo, used: Sequence[Profile]) -> None:
    """Raise ServingError where a configured size is outside a profile's range."""
    if info.is_shape or entry.allow_ragged_batch:
        return
    dims = list(entry.reshape.shape if entry.HasField("reshape") else entry.dims)
    for profile in used:
        allowed = profile.shapes[entry.name]
        full = full_shape(dims, config.max_batch_size)
        for axis, (low, size, high) in enumerate(zip(allowed.least, full, allowed.most, strict=False)):
            if size != -1 and not low <= size <= high:
                raise invalid(
                    f"model configuration specified invalid shape for input '{entry.name}' for model {config.name}. "
                    f"Error details: model expected the shape of dimension {axis} to be between {low} and {high} but "
                    f"received {size}"
                )


__all__ = ["check", "check_kind"]
