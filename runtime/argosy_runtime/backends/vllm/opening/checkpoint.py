"""Files of weights that are cut off: vLLM says of a model's only that its engine could not start."""

from pathlib import Path

from argosy_runtime.backends.adapters.safetensors import shapes
from argosy_runtime.errors import invalid


def check_checkpoint(model: str, folder: Path) -> None:
    """Raise ServingError (INVALID_ARG) for a file of weights that is shorter than its own header says."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            shapes(path)
        except ValueError as problem:
            raise invalid(f"model '{model}': '{path}' is cut off or broken: {problem}; fetch it again") from None
