"""Files of an adapter that do not fit its base model, though vLLM may take them.

vLLM copies matrices into larger ones without a word: an adapter of a smaller model would answer with nonsense.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from argosy_runtime.errors import invalid, unavailable

from .checkpoint import shapes

_SETTINGS: Final = "adapter_config.json"
_WEIGHTS: Final = "adapter_model.safetensors"
_OTHER_WEIGHTS: Final = ("adapter_model.bin", "adapter_model.pt")
_MATRIX: Final = re.compile(r"\bmodel\.layers\.(\d+)\.(?:self_attn|mlp)\.(\w+)\.lora_([AB])\.weight$")
_READS_HIDDEN: Final = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_WRITES_HIDDEN: Final = ("o_proj", "down_proj")


def check_adapter(model: str, name: str, folder: Path, base: Any) -> None:
    """Raise ServingError for an adapter whose files are missing (UNAVAILABLE), cut off, or another model's.

    `base`: the configuration of its model's text part, with `hidden_size` and `num_hidden_layers`; other sizes are for
    vLLM to check.
    """
    about = f"model '{model}': adapter '{name}'"
    if not (folder / _SETTINGS).is_file():
        raise unavailable(f"{about} has no '{folder / _SETTINGS}'")
    path = folder / _WEIGHTS
    if not path.is_file():
        if any((folder / other).is_file() for other in _OTHER_WEIGHTS):
            return
        raise unavailable(f"{about} has no '{path}'")
    try:
        matrices = shapes(path)
    except OSError as error:
        raise unavailable(f"{about}: '{path}' cannot be read: {error.strerror}") from error
    except ValueError as fault:
        raise invalid(f"{about}: '{path}' is cut off or broken: {fault}; fetch it again") from None
    problem = next(_misfits(matrices, getattr(base, "hidden_size", None), getattr(base, "num_hidden_layers", None)), "")
    if problem:
        raise invalid(f"{about} does not fit, it is another model's: {problem}")


def _misfits(matrices: Mapping[str, Sequence[int]], hidden: int | None, layers: int | None) -> Iterator[str]:
    """Yield what shows that matrices are not for a model of this size, None where that is not known."""
    for name, shape in matrices.items():
        match = _MATRIX.search(name)
        if match is None or len(shape) != 2:
            continue
        layer, module, side = int(match[1]), match[2], match[3]
        if layers is not None and layer >= layers:
            yield f"'{name}' is of layer {layer}, and the model has {layers}, from 0"
        size = shape[1] if side == "A" and module in _READS_HIDDEN else None
        size = shape[0] if side == "B" and module in _WRITES_HIDDEN else size
        if size is not None and hidden is not None and size != hidden:
            yield f"'{name}' is of hidden size {size}, and the model's is {hidden}"
