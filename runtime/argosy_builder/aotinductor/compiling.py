"""A step in a process of its own: an exported program becomes a package."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch._inductor

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.backends.pytorch.packages import INPUT_NAMES

from .exporting import NAMES, PROGRAM, loaded, on_gpu


def compile_package(exported: str, target: str, device: str, capability: str, inductor: Mapping[str, Any]) -> None:
    """Write the package of the program in the folder `exported` to the file `target`.

    `capability` is the GPU's compute capability that is asked for. Raises BuildError: BUILDER_MISSING where there is no
    such GPU; what torch raises else ends the process with its words.
    """
    program = loaded(Path(exported, PROGRAM))
    if device == "cuda":
        _check_gpu(capability)
        program = on_gpu(program)
    names = json.loads(Path(exported, NAMES).read_text())
    settings = {
        **inductor,
        "aot_inductor.metadata": {INPUT_NAMES: json.dumps(names)},
        # Headers that are compiled beforehand pay from the second package on, and this process makes one.
        "aot_inductor.precompile_headers": False,
    }
    # The archive's folder is called after the file, which the server may call otherwise.
    torch._inductor.aoti_compile_and_package(program, package_path=target, inductor_configs=settings)


def _check_gpu(capability: str) -> None:
    if not torch.cuda.is_available():
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"torch {torch.__version__} finds no GPU, and the package is for compute capability {capability}: set "
            "engine.image to one with torch for CUDA",
        )
    here = ".".join(map(str, torch.cuda.get_device_capability()))
    if here != capability:
        raise BuildError(
            BuildFailure.BUILDER_MISSING, f"the GPU here has compute capability {here}, and {capability} was requested"
        )
