"""Agreement of a configuration with an ONNX file, in Triton's words."""

from collections.abc import Iterable, Mapping, Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from argosy_runtime.backends.batch_io import batch_input_names
from argosy_runtime.backends.devices.gpus import GPU_DEVICE_IDS, named_gpus
from argosy_runtime.errors import internal, invalid
from argosy_runtime.modelconfig import datatypes
from argosy_runtime.modelconfig.shapes import WILDCARD, full_shape, shape_text

from .signature import Signature, TensorInfo


def check(config: ModelConfig, signature: Signature) -> None:
    """Raise ServingError where configuration and model differ, naming the tensor and both sides."""
    _check_count(config, signature)
    inputs = {**signature.inputs, **signature.overridable}
    for entry in config.input:
        if entry.optional and config.max_batch_size != 0:
            raise invalid(
                f"unable to load model '{config.name}', optional input '{entry.name}' "
                "is not supported for models that support batching"
            )
        info = _info(entry.name, inputs, "input")
        _check_datatype(config, entry, info, "input")
        if entry.allow_ragged_batch:
            _check_ragged(config, entry, info)
        else:
            _check_shape(config, entry, info, exact=False)
    scattered = {name for batch_output in config.batch_output for name in batch_output.target_name}
    for output in config.output:
        info = _info(output.name, signature.outputs, "output")
        _check_datatype(config, output, info, "output")
        if output.name not in scattered:
            _check_shape(config, output, info, exact=True)
    for name in batch_input_names(config):
        _info(name, inputs, "input")


def check_devices(config: ModelConfig, kind: str) -> None:
    """Raise ServingError where the model is configured for several GPUs: it would occupy them, and run on the CPU."""
    gpus = named_gpus(config) if kind == "KIND_MODEL" else ()
    if gpus:
        raise invalid(
            f"model '{config.name}': ONNX Runtime runs a model on one GPU and cannot span GPUs "
            f"{', '.join(map(str, gpus))}; give it an instance group of KIND_GPU, and leave out the parameter "
            f"'{GPU_DEVICE_IDS}'"
        )


def control_inputs(config: ModelConfig) -> list[str]:
    """Return the inputs that a sequence scheduler feeds: controls and implicit states."""
    batching = config.sequence_batching
    controls = [control.name for control in batching.control_input]
    return [*controls, *(state.input_name for state in batching.state)]


def _check_count(config: ModelConfig, signature: Signature) -> None:
    required = sum(not entry.optional for entry in config.input)
    expected = required + len(config.batch_input) + len(control_inputs(config))
    if len(signature.inputs) != expected:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects {expected} inputs, "
            f"model provides {len(signature.inputs)}"
        )
    for name in control_inputs(config):
        if name not in signature.inputs:
            raise internal(f"configuration specified sequence control '{name}', but model does not provide that input")


def _info(name: str, infos: Mapping[str, TensorInfo], side: str) -> TensorInfo:
    if name not in infos:
        raise invalid(f"unexpected inference {side} '{name}', allowed {side}s are: {_listed(infos)}")
    return infos[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _check_datatype(config: ModelConfig, entry: ModelInput | ModelOutput, info: TensorInfo, side: str) -> None:
    name = datatypes.config_name(entry.data_type)
    if name == "TYPE_INVALID":
        raise internal(f"unsupported datatype {name} for {side} '{entry.name}' for model '{config.name}'")
    if info.datatype is None or datatypes.config_type(info.datatype) != entry.data_type:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype {name} for {side} "
            f"'{entry.name}', model provides {f'TYPE_{info.datatype}' if info.datatype else info.onnx_type}"
        )


def _check_ragged(config: ModelConfig, entry: ModelInput, info: TensorInfo) -> None:
    about = f"unable to load model '{config.name}', configuration expects model provides input with shape [-1]"
    if entry.optional:
        raise invalid(f"{about} for ragged input '{entry.name}', which is not supported for optional input")
    if info.shape != (WILDCARD,):
        raise invalid(f"{about}  for ragged input '{entry.name}', model provides {shape_text(info.shape)}")


def _check_shape(config: ModelConfig, entry: ModelInput | ModelOutput, info: TensorInfo, *, exact: bool) -> None:
    dims = list(entry.reshape.shape if entry.HasField("reshape") else entry.dims)
    if not info.shape:
        _check_scalar(config, entry.name, dims)
        return
    about = f"model '{config.name}', tensor '{entry.name}': "
    batched = config.max_batch_size > 0
    if batched and not info.has_variable_first:
        raise invalid(
            f"{about}for the model to support batching the shape should have at least 1 dimension and the "
            f"first "
            f"dimension must be -1; but shape expected by the model is {shape_text(info.shape)}"
        )
    full = full_shape(dims, config.max_batch_size)
    if _agrees(info.shape, full, exact=exact):
        return
    note = (
        f" dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor "
        f"shape, "
        f"making complete shape {shape_text(full)})"
        if batched
        else f" dimensions (shape {shape_text(full)})"
    )
    raise invalid(
        f"{about}the model expects {len(info.shape)} dimensions (shape {shape_text(info.shape)}) "
        f"but the model configuration specifies {len(full)}{note}"
    )


def _agrees(model: Sequence[int], configured: Sequence[int], *, exact: bool) -> bool:
    return len(model) == len(configured) and all(
        left == right or (left == -1 and not exact) for left, right in zip(model, configured, strict=True)
    )


def _check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    if any(dim != 1 for dim in dims):
        raise invalid(
            f"unable to load model '{config.name}', scalar tensor '{name}', should only provide 1 in the "
            f"model "
            f"configuration when the model doesn't support batching. Model configuration provided: "
            f"{shape_text(dims)}."
        )
