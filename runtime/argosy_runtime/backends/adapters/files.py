"""Files of an adapter that do not fit its base model, though its engine may take them.

vLLM copies matrices into larger ones without a word: an adapter of a smaller model would answer with nonsense.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from argosy_runtime.errors import ServingError, invalid, unavailable

from .safetensors import shapes

_SETTINGS: Final = "adapter_config.json"
_WEIGHTS: Final = "adapter_model.safetensors"
_MATRIX: Final = re.compile(r"\bmodel\.layers\.(\d+)\.(?:self_attn|mlp)\.(\w+)\.lora_([AB])\.weight$")
_READS_HIDDEN: Final = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_WRITES_HIDDEN: Final = ("o_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class BaseModel:
    """The model that adapters are for, with the size of its text part: `hidden` and `layers`, 0 where not known.

    `unchecked`: further files of weights that its engine reads, whose matrices are for the engine to check.
    """

    name: str
    hidden: int = 0
    layers: int = 0
    unchecked: tuple[str, ...] = ()


def adapter_rank(base: BaseModel, name: str, folder: Path) -> int:
    """Return the rank of an adapter that fits its base model; sizes other than the base's are for the engine to check.

    Raises ServingError where files are missing (UNAVAILABLE), cannot be read, or are cut off or another model's.
    """
    about = f"model '{base.name}': adapter '{name}'"
    rank = _settings_rank(about, folder / _SETTINGS)
    path = folder / _WEIGHTS
    if not path.is_file() and any((folder / other).is_file() for other in base.unchecked):
        return rank
    problem = next(_misfits(_matrices(about, path), base), "")
    if problem:
        raise invalid(f"{about} does not fit, it is another model's: {problem}")
    return rank


def fits(base: BaseModel, folder: Path) -> bool:
    """Return whether the files of an adapter are complete, and fit its base model."""
    try:
        adapter_rank(base, folder.name, folder)
    except ServingError:
        return False
    return True


def largest_rank(folders: Iterable[Path]) -> int:
    """Return the largest rank of adapters, 0 without any whose `adapter_config.json` can be read."""
    ranks = []
    for folder in folders:
        try:
            ranks.append(_settings_rank("", folder / _SETTINGS))
        except ServingError:
            continue  # `adapter_rank` says what is wrong with it
    return max(ranks, default=0)


def _settings_rank(about: str, path: Path) -> int:
    try:
        return int(msgspec.json.decode(path.read_bytes())["r"])
    except FileNotFoundError:
        raise unavailable(f"{about} has no '{path}'") from None
    except OSError as error:
        raise unavailable(f"{about}: '{path}' cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise invalid(f"{about}: '{path}' cannot be read: it has no rank 'r' ({type(error).__name__})") from None


def _matrices(about: str, path: Path) -> Mapping[str, Sequence[int]]:
    try:
        return shapes(path)
    except FileNotFoundError:
        raise unavailable(f"{about} has no '{path}'") from None
    except OSError as error:
        raise unavailable(f"{about}: '{path}' cannot be read: {error.strerror}") from error
    except ValueError as fault:
        raise invalid(f"{about}: '{path}' is cut off or broken: {fault}; fetch it again") from None


def _misfits(matrices: Mapping[str, Sequence[int]], base: BaseModel) -> Iterator[str]:
    """Yield what shows that matrices are another model's."""
    for name, shape in matrices.items():
        match = _MATRIX.search(name)
        if match is None or len(shape) != 2:
            continue
        layer, module, side = int(match[1]), match[2], match[3]
        if base.layers and layer >= base.layers:
            yield f"'{name}' is of layer {layer}, and the model has {base.layers}, from 0"
        size = shape[1] if side == "A" and module in _READS_HIDDEN else None
        size = shape[0] if side == "B" and module in _WRITES_HIDDEN else size
        if size is not None and base.hidden and size != base.hidden:
            yield f"'{name}' is of hidden size {size}, and the model's is {base.hidden}"
