"""What a file of trees says of itself, read before Treelite reads it: its format, and its number of classes."""

import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_BEGINNINGS: Final = (
    (re.compile(rb'\s*\{\s*["}]'), "xgboost_json"),
    (re.compile(rb"\{[#$UiIlL]"), "xgboost_ubj"),
    (re.compile(rb"binf"), "xgboost"),
    (re.compile(rb"tree\s"), "lightgbm"),
)
_CLASSES: Final = b"num_class"
_NUMBER: Final = re.compile(rb'(?:"\s*:\s*"?|[=:]\s*|S(?:[iU].|I..|l.{4}|L.{8}))(\d{1,20})', re.DOTALL)
"""What follows that name: in JSON, in LightGBM's text, and in UBJSON, where it is a text after its length."""
_LONGEST: Final = 64
_HEADER: Final = struct.Struct("<fIi")
"""XGBoost's binary format begins with a score, the features and the classes, after `binf` where that is."""


def apparent_type(path: Path) -> str:
    """Return the `model_type` that a file's first bytes are of; empty where they are of none that is known."""
    with path.open("rb") as file:
        first = file.read(_LONGEST)
    return next((name for beginning, name in _BEGINNINGS if beginning.match(first)), "")


def check_classes(path: Path, classes: int) -> None:
    """Raise ValueError where a file has more classes than bytes: each has a tree, or a number in each leaf."""
    if classes > (size := path.stat().st_size):
        raise ValueError(f"its num_class is {classes}, and a file of {size} bytes has no trees of as many classes")


def named_classes(path: Path, model_type: str) -> int:
    """Return the largest number of classes that a file names; 0 where it names none.

    Treelite reserves memory for so many before it reads a tree, except for a checkpoint, of which this is 0.
    """
    if model_type == "treelite_checkpoint" or not path.stat().st_size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        binary = model_type == "xgboost" and apparent_type(path) in ("", "xgboost")
        of_header = _of_header(content[:_LONGEST]) if binary else 0
        return max(of_header, max(_of_fields(content), default=0))


def _of_header(first: bytes) -> int:
    header = first.removeprefix(b"binf")
    return int(_HEADER.unpack_from(header)[2]) if len(header) >= _HEADER.size else 0


def _of_fields(content: mmap.mmap) -> Iterator[int]:
    at = content.find(_CLASSES)
    while at >= 0:
        after = at + len(_CLASSES)
        if number := _NUMBER.match(content[after : after + _LONGEST]):
            yield int(number[1])
        at = content.find(_CLASSES, after)
