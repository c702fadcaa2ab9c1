"""Autofill of a configuration from an ONNX file's signature, as in Triton."""

from collections.abc import Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig import config_type

from .signature import Signature, TensorInfo

DEFAULT_MAX_BATCH_SIZE = 4
BATCH_SETTING = "default-max-batch-size"


def completed(config: ModelConfig, signature: Signature) -> ModelConfig:
    """Return a copy of `config` with the batching and the inputs or outputs it lacks.

    Raises ServingError where a max_batch_size is set but the model has no batch dimension, or where a datatype has
    no V2 name.
    """
    result = ModelConfig()
    result.CopyFrom(config)
    _fill_batching(result, signature)
    if not (config.input or config.batch_input):
        _fill_tensors(result, "input", signature.inputs)
    if not config.output:
        _fill_tensors(result, "output", signature.outputs)
    return result


def _fill_batching(config: ModelConfig, signature: Signature) -> None:
    if not signature.can_batch:
        if config.max_batch_size != 0:
            raise invalid(
                f"autofill failed for model '{config.name}': model does not support batching "
                "while non-zero max_batch_size is specified"
            )
        return
    default = Parameters(config).integer(BATCH_SETTING, DEFAULT_MAX_BATCH_SIZE, minimum=0)
    config.max_batch_size = config.max_batch_size or default
    if config.max_batch_size > 1 and not config.HasField("sequence_batching"):
        config.dynamic_batching.SetInParent()


def _fill_tensors(config: ModelConfig, side: str, infos: Mapping[str, TensorInfo]) -> None:
    for name, info in infos.items():
        if info.datatype is None:
            raise invalid(
                f"autofill failed for model '{config.name}': {side} '{name}' is a {info.onnx_type}, "
                "which no model configuration can describe"
            )
        tensor = getattr(config, side).add(name=name, data_type=config_type(info.datatype))
        dims = info.shape[1:] if config.max_batch_size > 0 else info.shape
        tensor.dims.extend(dims or [1])
        if not dims and config.max_batch_size > 0:
            tensor.reshape.SetInParent()
