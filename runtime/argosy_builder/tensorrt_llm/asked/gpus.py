"""Which GPUs TensorRT-LLM makes which arithmetic for."""

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

from .settings import Settings

LEAST = {"bf16": 8.0, "fp8": 8.9, "fp4": 10.0}
ANY = 8.0
"""No GPU before this is of use."""
WITHOUT_INTEGERS = (10.0, 12.0)
"""From the first up to the second no engines of int8 and int4 are built."""


def unsupported(precision: str, architecture: str, *, is_engine: bool) -> str:
    """Return why a GPU of this compute capability cannot have it; empty: it can."""
    capability = float(architecture)
    least = max(ANY, LEAST.get(precision, 0.0))
    if capability < least:
        return f"needs a GPU of compute capability {least} or more, and this one has {architecture}"
    first, behind = WITHOUT_INTEGERS
    if is_engine and precision in ("int8", "int4") and first <= capability < behind:
        return f"TensorRT-LLM builds no engines of {precision} for compute capability {architecture}; take fp8 or fp4"
    return ""


def check_gpu(settings: Settings, precision: str, architecture: str) -> None:
    """Raises BuildError: INVALID_OPTIONS."""
    if not architecture[:1].isdigit():
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"spec.engine.builder: TensorRT-LLM builds for GPUs, and the model is to run on {architecture}",
        )
    if why := unsupported(precision, architecture, is_engine=settings.is_engine):
        raise BuildError(BuildFailure.INVALID_OPTIONS, f"spec.engine.precision: {precision or 'the model'} {why}")
