"""The header of a file of weights, which shows whether the file is cut off.

The format is https://huggingface.co/docs/safetensors: u64 length of a header in JSON, the header, the tensors.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

_LENGTH: Final = 8
_LONGEST_HEADER: Final = 100 << 20


def shapes(path: Path) -> dict[str, list[int]]:
    """Return the shapes of a file's tensors, by name. Raises ValueError where it is shorter than its own header says.

    Raises OSError where it cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if size < _LENGTH or length > min(_LONGEST_HEADER, size - _LENGTH):
            raise ValueError(f"it has {size} bytes, fewer than its header")
        text = file.read(length)
    try:
        header = msgspec.json.decode(text, type=dict[str, Any])
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        due = _LENGTH + length + max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
        sizes = {name: [int(length) for length in tensor["shape"]] for name, tensor in tensors.items()}
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise ValueError(f"its header cannot be read ({type(error).__name__})") from None
    if size < due:
        raise ValueError(f"it has {size} bytes of {due}")
    return sizes
