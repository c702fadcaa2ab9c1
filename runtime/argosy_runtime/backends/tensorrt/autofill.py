"""Autofill of a configuration from an engine, as in Triton."""

from collections.abc import Iterable, Sequence, Set
from typing import TypeAlias

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from argosy_runtime.backends.batch_io import batch_input_names, ragged_input_names, scattered_output_names
from argosy_runtime.errors import internal, invalid
from argosy_runtime.modelconfig import config_type

from . import profiles
from .signature import Profile, Signature, TensorInfo

Entry: TypeAlias = "ModelInput | ModelOutput"


def profile_indices(config: ModelConfig, count: int) -> list[int]:
    """Return the profiles that any instance uses, of the engine's `count`. Raises ServingError for a missing one."""
    indices = {int(name) for group in config.instance_group for name in group.profile if name.isdigit()}
    for index in sorted(indices):
        if index >= count:
            raise internal(
                f"unable to autofill for '{config.name}', configuration specified invalid profile {index} . Number of "
                f"profiles supported by TensorRT engine: {count}"
            )
    return sorted(indices) or [profiles.NONE[1]]


def completed(config: ModelConfig, signature: Signature, used: Sequence[Profile]) -> ModelConfig:
    """Return a copy of `config` with max_batch_size, dynamic_batching, inputs and outputs where it lacks them.

    The first dimension is taken for the batch, unless the configured dims are full. Raises ServingError where the
    configuration contradicts the engine.
    """
    result = ModelConfig()
    result.CopyFrom(config)
    largest = _largest_batch(used, ragged_input_names(config) | set(batch_input_names(config)))
    if not largest and ragged_input_names(config):
        largest = config.max_batch_size
    hint = _batches(config, signature)
    if hint and not largest:
        raise internal(
            f"autofill failed for model '{config.name}': model tensor shape configuration hints for dynamic batching "
            "but the underlying engine doesn't support batching."
        )
    if hint is False:
        largest = 0
    if config.max_batch_size > largest:
        raise internal(
            f"autofill failed for model '{config.name}': configuration specified max-batch {config.max_batch_size} but "
            f"TensorRT engine only supports max-batch {largest}"
        )
    result.max_batch_size = config.max_batch_size or largest
    if result.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
        result.dynamic_batching.SetInParent()
    _fill(result, result.input, signature.inputs.values(), "input")
    _fill(result, result.output, signature.outputs.values(), "output")
    return result


def _largest_batch(used: Sequence[Profile], without_rows: Set[str]) -> int:
    """Return the largest batch that some profile takes: of each profile, the smallest limit of its inputs with rows."""
    return max((min(_largest_by_input(profile, without_rows), default=0) for profile in used), default=0)


def _largest_by_input(profile: Profile, without_rows: Set[str]) -> Iterable[int]:
    for name, allowed in profile.shapes.items():
        if name in without_rows:
            continue
        most = profile.values[name].most if name in profile.values else allowed.most
        yield most[0] if most else 0


def _batches(config: ModelConfig, signature: Signature) -> bool | None:
    """Return whether the configured dims leave out a batch dimension; None where none are configured.

    Raises ServingError where they contradict each other.
    """
    ragged = ragged_input_names(config) | scattered_output_names(config)
    hints = [
        _leaves_out_batch(entry, infos[entry.name])
        for entries, infos in ((config.input, signature.inputs), (config.output, signature.outputs))
        for entry in entries
        if entry.name in infos and entry.name not in ragged and _dims(entry)
    ]
    if True in hints and False in hints:
        raise internal(
            f"unable to autofill for '{config.name}', model tensor configurations are contradicting each other in "
            "terms of whether batching is supported"
        )
    return hints[0] if hints else None


def _dims(entry: Entry) -> list[int]:
    return list(entry.reshape.shape if entry.HasField("reshape") else entry.dims)


def _leaves_out_batch(entry: Entry, info: TensorInfo) -> bool:
    dims = _dims(entry)
    return info.values == dims[0] + 1 if info.is_shape else len(info.shape) == len(dims) + 1


def _fill(config: ModelConfig, entries: "Iterable[Entry]", infos: Iterable[TensorInfo], side: str) -> None:
    configured = {entry.name: entry for entry in entries}
    for info in infos:
        entry = configured.get(info.name)
        if entry is None and configured:
            continue  # validation reports what is missing among the configured ones
        made = entry if entry is not None else getattr(config, side).add(name=info.name)
        _fill_one(config, made, info, side)


def _fill_one(config: ModelConfig, entry: Entry, info: TensorInfo, side: str) -> None:
    if info.datatype is None:
        raise invalid(
            f"autofill failed for model '{config.name}': {side} '{info.name}' is of TensorRT's type {info.trt_type}, "
            "which no model configuration can describe"
        )
    entry.data_type = entry.data_type or config_type(info.datatype)
    entry.is_shape_tensor = entry.is_shape_tensor or info.is_shape
    if not entry.dims:
        dims = _dims_of(info, config.max_batch_size > 0)
        entry.dims.extend(dims or [1])
        if not dims and not info.is_shape:
            entry.reshape.SetInParent()


def _dims_of(info: TensorInfo, batched: bool) -> Sequence[int]:
    if info.is_shape:
        return [info.values - 1 if batched else info.values]  # the backend puts the batch's size in front
    return info.shape[1:] if batched else info.shape


__all__ = ["completed", "profile_indices"]
