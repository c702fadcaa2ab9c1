"""Which file of a version an instance opens: `cc_model_filenames` by the GPU's compute capability, else the default."""

from collections.abc import Mapping
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

BY_COMPUTE_CAPABILITY: Final = frozenset({"onnxruntime", "pytorch", "libtorch", "tensorrt"})
"""The backends that open what `cc_model_filenames` names. Those of Python code and of whole folders do not."""


def for_device(config: ModelConfig, compute_capability: str | None) -> ModelConfig:
    """`config` as an instance reads it on a GPU of that compute capability ("9.0"), or on none.

    A copy with the GPU's own file as `default_model_filename` where `cc_model_filenames` has exactly this key; Triton
    takes no nearest one. `config` itself in every other case.
    """
    own = config.cc_model_filenames.get(compute_capability or "") if config.backend in BY_COMPUTE_CAPABILITY else None
    if own is None:
        return config
    resolved = ModelConfig()
    resolved.CopyFrom(config)
    resolved.default_model_filename = own
    return resolved


def first_gpu(config: ModelConfig, gpus: Mapping[int, str]) -> int | None:
    """Return the GPU whose file tells what the configuration leaves out: the first of the first group that may have
    one.

    `gpus` are the machine's, ordinal to compute capability. None where the instances run on none of them.
    """
    for group in config.instance_group:
        if group.kind in (ModelInstanceGroup.KIND_GPU, ModelInstanceGroup.KIND_AUTO):
            named = [gpu for gpu in (group.gpus or sorted(gpus)) if gpu in gpus]
            return named[0] if named else None
    return None if config.instance_group or not gpus else min(gpus)


__all__ = ["BY_COMPUTE_CAPABILITY", "first_gpu", "for_device"]
