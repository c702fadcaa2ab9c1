"""GPUs of an instance that may span several (KIND_MODEL)."""

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import invalid, unavailable

GPU_DEVICE_IDS = "gpu_device_ids"


def named_gpus(config: ModelConfig) -> tuple[int, ...]:
    """Return the ordinals in the parameter `gpu_device_ids`, such as 0,1; none where it is not set.

    Raises ServingError (INVALID_ARG).
    """
    value = Parameters(config).text(GPU_DEVICE_IDS)
    if not value.strip():
        return ()
    words = [word.strip() for word in value.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words) or len(set(map(int, words))) < len(words):
        raise invalid(
            f"model '{config.name}': parameter '{GPU_DEVICE_IDS}' is '{value}', expected different GPUs, such as 0,1"
        )
    return tuple(map(int, words))


def gpus_of_model(config: ModelConfig, visible: int) -> tuple[int, ...]:
    """Return the GPUs of a KIND_MODEL instance: the named ones, or else all `visible` ones (possibly none). Raises
    ServingError: INVALID_ARG for an invalid list, UNAVAILABLE for GPUs that do not exist.
    """
    named = named_gpus(config)
    missing = [gpu for gpu in named if gpu >= visible]
    if missing:
        raise unavailable(
            f"model '{config.name}': parameter '{GPU_DEVICE_IDS}' names GPU {missing[0]}, and this process can use "
            f"{visible}, counted from 0; without the parameter the model takes all of them"
        )
    return named or tuple(range(visible))
