"""The GPUs that an engine may use: those that CUDA shows it."""

from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.devices.gpus import named_gpus
from argosy_runtime.errors import invalid, unavailable

_GPU_DEVICE_IDS: Final = "GPU_DEVICE_IDS"


def visible_gpus(spec: InstanceSpec, parts: int, shown: str | None) -> str | None:
    """Return the value of CUDA_VISIBLE_DEVICES for an instance that is split over `parts` devices, None to leave it.

    `shown` is its present value, whose entries the ordinals of the configuration count. Raises ServingError.
    """
    if spec.kind == "KIND_CPU":
        return None
    if spec.kind == "KIND_GPU":
        if parts > 1:
            raise invalid(
                f"model instance '{spec.name}': KIND_GPU is for one GPU, and its parallelism is {parts}; "
                "specify KIND_MODEL"
            )
        ordinals: tuple[int, ...] = (spec.device_id,)
    else:
        ordinals = named_gpus(_lowered(spec))
        if ordinals and len(ordinals) != parts:
            raise invalid(
                f"model instance '{spec.name}': gpu_device_ids names {len(ordinals)} GPUs, and its parallelism "
                f"(tensor_parallel_size times pipeline_parallel_size) is {parts}"
            )
    if not ordinals:
        return None
    if not shown:
        return ",".join(map(str, ordinals))
    devices = [device.strip() for device in shown.split(",")]
    missing = [gpu for gpu in ordinals if gpu >= len(devices)]
    if missing:
        raise unavailable(f"model instance '{spec.name}': there is no GPU {missing[0]} among {shown}")
    return ",".join(devices[gpu] for gpu in ordinals)


def _lowered(spec: InstanceSpec) -> ModelConfig:
    """Return the configuration with Triton's spelling of the parameter replaced by ours."""
    config = spec.config
    if _GPU_DEVICE_IDS not in config.parameters:
        return config
    copy = ModelConfig()
    copy.CopyFrom(config)
    copy.parameters["gpu_device_ids"].string_value = config.parameters[_GPU_DEVICE_IDS].string_value
    return copy
