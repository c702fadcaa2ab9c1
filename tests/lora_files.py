"""Files of LoRA adapters whose matrices no stand-in reads: their names and shapes alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def weights(shapes: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """Return a file of safetensors with zeros of these shapes, as 8-bit integers."""
    header, end = {}, 0
    for name, shape in (shapes or {}).items():
        size = 1
        for length in shape:
            size *= length
        header[name] = {"dtype": "I8", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end)


def write(folder: Path, rank: int = 8, shapes: Mapping[str, Sequence[int]] | None = None) -> Path:
    """Write an adapter's configuration and weights, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
    (folder / "adapter_model.safetensors").write_bytes(weights(shapes))
    return folder
