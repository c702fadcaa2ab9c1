"""Steps in processes of their own: the graph optimized and written, and converted to 16 bits."""

import platform
from collections.abc import Sequence
from pathlib import Path

from onnxruntime.transformers.float16 import convert_float_to_float16

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

from .files import LARGE, has_external_data, loaded, save, weight_bytes
from .sessions import first_line_of, opened, options_of

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Kubernetes' names of architectures by Linux's."""
ANYWHERE = ("disable", "basic")
"""Levels whose graphs any machine can run."""
BLOCKED = ("NchwcTransformer",)
"""What lays tensors out for this processor's width of vectors. It is left to the server, which does it when it loads
the model, so that what is written runs on each processor of the architecture."""


def optimize(source: str, target: str, level: str, architecture: str, providers: Sequence[str]) -> dict[str, int]:
    """Write the graph as ONNX Runtime optimizes it for the providers. How many nodes there were, and are.

    Raises BuildError (INVALID_OPTIONS) for a level that is this machine's own where this is no machine of the
    architecture.
    """
    here = platform.machine()
    required = MACHINES.get(architecture, here)
    if level not in ANYWHERE and required != here:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.options.graph_optimization_level: {level} is for the kind of machine that builds, which is {here} "
            f"and not {architecture}: choose basic, or build on a node of {architecture}",
        )
    path = Path(source)
    model = loaded(path, weights=False)
    options = options_of(level)
    options.optimized_model_filepath = target
    data = Path(f"{target}.data")
    if has_external_data(model):
        entry = "session.optimized_model_external_initializers_"
        options.add_session_config_entry(f"{entry}file_name", data.name)
        options.add_session_config_entry(f"{entry}min_size_in_bytes", "1024")
    opened(path, providers, options, disabled_optimizers=list(BLOCKED))
    if data.exists() and weight_bytes(model) <= LARGE:
        model = loaded(Path(target))
        data.unlink()
        save(model, Path(target))
    return {"before": len(model.graph.node), "after": len(loaded(Path(target), weights=False).graph.node)}


def halve(source: str, target: str) -> None:
    """Write the model with weights and arithmetic in fp16, and its inputs and outputs as they were."""
    model = loaded(Path(source))
    try:
        half = convert_float_to_float16(model, keep_io_types=True, disable_shape_infer=weight_bytes(model) > LARGE)
    except (ValueError, TypeError, RuntimeError) as error:
        raise BuildError(
            BuildFailure.UNSUPPORTED_MODEL,
            f"the model cannot be converted to fp16: {first_line_of(error)}; choose engine.precision fp32",
        ) from error
    save(half, Path(target))
