"""A Hugging Face checkpoint's files, inspected before anything is loaded, so that a truncated file fails at once."""

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure, ModelShape
from argosy_agent.contract.fields import DocumentError
from argosy_agent.contract.modelshapes import parse_shape
from argosy_builder.contract import BuildError

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
OF_TOKENIZERS = (
    "tokenizer*.json",
    "tokenizer.model",
    "*.tiktoken",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.*",
    CONFIG,
)
"""What goes along with an engine, so that texts can be made tokens: names, as globs."""
_HEADER = 100 * 2**20
"""No header of a safetensors file is larger."""


def read_config(model: Path) -> Mapping[str, Any]:
    """Return the checkpoint's `config.json`. Raises BuildError: MODEL_INVALID."""
    path = model / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(entry.name for entry in model.iterdir())[:5]) or "nothing"
        raise _invalid(CONFIG, f"is missing; a Hugging Face checkpoint has one, and here is {there}") from None
    except (ValueError, OSError) as error:
        raise _invalid(CONFIG, f"cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise _invalid(CONFIG, "is no JSON object")
    return config


def read_shape(model: Path) -> ModelShape | None:
    """Return the sizes in `config.json`. Raises BuildError: MODEL_INVALID."""
    try:
        return parse_shape((model / CONFIG).read_text(encoding="utf-8"), CONFIG)
    except DocumentError as error:
        raise BuildError(BuildFailure.MODEL_INVALID, str(error)) from error


def check_weights(model: Path) -> None:
    """Raise BuildError, MODEL_INVALID, where a file of weights is missing or cut off."""
    shards = sorted(model.glob("*.safetensors"))
    if (model / INDEX).is_file():
        _check_index(model, {shard.name for shard in shards})
    elif not shards:
        if any(model.glob("pytorch_model*.bin")):
            return
        raise _invalid("*.safetensors", "are missing; there are no weights among the model's files")
    for shard in shards:
        _check_shard(shard)


def copy_tokenizer(model: Path, folder: Path) -> None:
    """Copy what makes tokens of texts."""
    folder.mkdir()
    for pattern in OF_TOKENIZERS:
        for path in sorted(model.glob(pattern)):
            if path.is_file():
                shutil.copyfile(path, folder / path.name)


def _check_index(model: Path, there: set[str]) -> None:
    try:
        index = json.loads((model / INDEX).read_text(encoding="utf-8"))
        named = set(map(str, index["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise _invalid(INDEX, f"cannot be read: {error!r}") from error
    missing = sorted(named - there)
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise _invalid(INDEX, f"names {', '.join(missing[:3])}{more}, which the model's files have not")


def _check_shard(path: Path) -> None:
    """Check the header, and that the file is as long as it says (safetensors: 8 bytes of length, JSON, data)."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 0 < length <= min(_HEADER, size):
            if start.startswith(b"version"):
                raise _invalid(path.name, "is a pointer of Git LFS, and not the file; store the files themselves")
            raise _invalid(path.name, f"is no safetensors file, or cut off ({size} bytes)")
        try:
            header = json.loads(file.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _invalid(path.name, f"has a header that cannot be read: {error!r}") from error
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise _invalid(path.name, f"has {size} bytes, and its header says {expected}: it is cut off, or broken")


def _invalid(name: str, message: str) -> BuildError:
    return BuildError(BuildFailure.MODEL_INVALID, f"spec.storageUri: {name} {message}")
