"""What a version's folder holds: an engine or a checkpoint, read without TensorRT-LLM."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from argosy_runtime.backends.generation.autofill import has_tokenizer
from argosy_runtime.errors import invalid, unavailable

CONFIG: Final = "config.json"
ARGUMENTS: Final = "llm_args.yaml"
_PARTS: Final = ("pretrained_config", "build_config")
"""What the `config.json` of an engine has, and that of a checkpoint has not."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files. `tokenizer` is the folder of its tokenizer, None without one.

    `engine`: whether it is one, with the `release` that built it. `vocabulary`, `context`, `hidden` and `layers` are 0
    where the configuration does not tell them. `ends` are its end tokens. `build` is an engine's build_config.
    """

    path: Path
    tokenizer: Path | None
    engine: bool
    release: str = ""
    ranks: int = 1
    vocabulary: int = 0
    context: int = 0
    hidden: int = 0
    layers: int = 0
    ends: tuple[int, ...] = ()
    build: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weights(self) -> int:
        """Bytes of the weights: of the engine's parts, or of the checkpoint's files."""
        pattern = "rank*.engine" if self.engine else "*.safetensors"
        return sum(file.stat().st_size for file in self.path.glob(pattern))

    @property
    def arguments(self) -> Path:
        """The file of the arguments that go with a checkpoint."""
        return self.path / ARGUMENTS


def folder_of(model: str, path: Path) -> ModelFolder:
    """Return what a version's folder holds. Raises ServingError (UNAVAILABLE) where that is no model."""
    config = _json(model, path / CONFIG)
    if all(isinstance(config.get(part), dict) for part in _PARTS):
        return _engine(model, path, config)
    if any(path.glob("rank*.engine")):
        raise unavailable(f"model '{model}': '{path / CONFIG}' is not the one that trtllm-build wrote for its engine")
    text = config.get("text_config")
    sizes = {**config, **text} if isinstance(text, dict) else config
    return ModelFolder(
        path,
        _tokenizer(path),
        engine=False,
        vocabulary=_number(sizes, "vocab_size"),
        context=_number(sizes, "max_position_embeddings"),
        hidden=_number(sizes, "hidden_size"),
        layers=_number(sizes, "num_hidden_layers"),
        ends=_ends(path, config),
    )


def _engine(model: str, path: Path, config: Mapping[str, Any]) -> ModelFolder:
    pretrained, build = (config[part] for part in _PARTS)
    mapping = pretrained.get("mapping")
    ranks = max(_number(mapping, "world_size"), 1) if isinstance(mapping, dict) else 1
    missing = [name for name in (f"rank{rank}.engine" for rank in range(ranks)) if not (path / name).is_file()]
    if missing:
        raise unavailable(f"model '{model}': unable to find '{path / missing[0]}', one of {ranks} parts of its engine")
    beneath = path / "tokenizer"
    tokenizer = _tokenizer(beneath) or _tokenizer(path)
    guessed = _number(build, "max_draft_len") if build.get("speculative_decoding_mode") not in (None, 0, 1) else 0
    return ModelFolder(
        path,
        tokenizer,
        engine=True,
        release=str(config.get("version", "")),
        ranks=ranks,
        vocabulary=_number(pretrained, "vocab_size"),
        context=max(_number(build, "max_seq_len") - guessed, 0),
        hidden=_number(pretrained, "hidden_size"),
        layers=_number(pretrained, "num_hidden_layers"),
        ends=_ends(tokenizer, {}) if tokenizer is not None else (),
        build=build,
    )


def _tokenizer(folder: Path) -> Path | None:
    return folder if has_tokenizer(folder) else None


def _ends(folder: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the end tokens: those for generating, else those of the model's configuration next to the tokenizer."""
    for name in ("generation_config.json", CONFIG):
        try:
            values = config if name == CONFIG and config else json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        declared = values.get("eos_token_id") if isinstance(values, dict) else None
        ids = declared if isinstance(declared, list) else [declared]
        if ends := tuple(token for token in ids if isinstance(token, int) and token >= 0):
            return ends
    return ()


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _json(model: str, path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise unavailable(f"unable to find '{path}' for model '{model}'") from None
    except (OSError, ValueError) as error:
        raise invalid(f"model '{model}': '{path}' cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise invalid(f"model '{model}': '{path}' is no JSON object")
    return values
