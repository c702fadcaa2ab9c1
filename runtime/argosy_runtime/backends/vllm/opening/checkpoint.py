"""Files of a model that are cut off: vLLM says of them only that its engine could not start.

The format is https://huggingface.co/docs/safetensors: u64 length of a header in JSON, the header, the tensors.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from argosy_runtime.errors import invalid

_LENGTH: Final = 8
_LONGEST_HEADER: Final = 100 << 20


def check_checkpoint(model: str, folder: Path) -> None:
    """Raise ServingError (INVALID_ARG) for a file of weights that is shorter than its own header says."""
    for path in sorted(folder.glob("*.safetensors")):
        problem = _problem(path)
        if problem:
            raise invalid(f"model '{model}': '{path}' is cut off or broken: {problem}; fetch it again")


def _problem(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if size < _LENGTH or length > min(_LONGEST_HEADER, size - _LENGTH):
            return f"it has {size} bytes, fewer than its header"
        text = file.read(length)
    try:
        header = msgspec.json.decode(text, type=dict[str, Any])
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        due = _LENGTH + length + max(ends, default=0)
    except (msgspec.MsgspecError, LookupError, TypeError) as error:
        return f"its header cannot be read ({type(error).__name__})"
    return "" if size >= due else f"it has {size} bytes of {due}"
