"""TensorRT's words for why there is no engine, as reasons that people can act on. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.process.causes import Cause

_OOM: Final = (
    "the GPU's memory is not enough to build on: lower engine.options.workspace, max_num_tactics, spec.maxBatchSize or "
    "the largest shapes in engine.options.profiles, or build on a larger GPU ({line})"
)
CAUSES: Final = (
    Cause(
        r"Requested amount of GPU memory .* could not be allocated|Device memory is insufficient|"
        r"due to insufficient (memory|workspace)|Error Code 2: OutOfMemory|autotuning: CUDA error 2\b|"
        r"CUDA error 2 allocating",
        BuildFailure.OUT_OF_GPU_MEMORY,
        _OOM,
    ),
    Cause(
        r"CUDA initialization failure|factory function returned nullptr|no CUDA-capable device",
        BuildFailure.BUILDER_MISSING,
        "TensorRT finds no GPU that it can use: set engine.image to one that suits the node's driver ({line})",
    ),
    Cause(
        r"no optimization profile has been defined|has missing shape",
        BuildFailure.INVALID_OPTIONS,
        "engine.options.profiles: TensorRT wants shapes of every input that varies ({line})",
    ),
    Cause(
        r"is not compatible with a strongly typed network",
        BuildFailure.INVALID_OPTIONS,
        "engine.options.strongly_typed: the precision cannot be set with it; leave one of them out ({line})",
    ),
    Cause(
        r"only (be )?supported on .*Ampere|is not supported on this platform|requires? (a )?(GPU|device) with",
        BuildFailure.INVALID_OPTIONS,
        "engine: this GPU cannot do what is requested ({line})",
    ),
    Cause(
        r"Could not find any implementation for node|Plugin not found|No importer registered for op|"
        r"could not find plugin|UNSUPPORTED_",
        BuildFailure.UNSUPPORTED_MODEL,
        "TensorRT has no way to run a layer of the model: export it otherwise, or use another engine.builder ({line})",
    ),
)
"""In the order in which they count: that no implementation was found follows from too little memory, too."""


def failed(lines: Sequence[str], cancelled: bool = False) -> BuildError:
    """Return the error of a build without a result, from the logger's lines, in order."""
    if cancelled:
        return BuildError(BuildFailure.BUILD_FAILED, "tensorrt: the build was stopped by a signal", passes=True)
    for cause in CAUSES:
        for line in lines:
            if match := re.search(cause.pattern, line):
                return BuildError(cause.failure, cause.says.format(*match.groups(), line=line.strip()))
    reason = lines[-1].strip() if lines else "it gives no reason"
    return BuildError(BuildFailure.BUILD_FAILED, f"tensorrt built no engine: {reason}")


__all__ = ["CAUSES", "failed"]
