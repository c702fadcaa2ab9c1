"""What a file of trees says of itself, read before Treelite reads it: its format, and its number of classes."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

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
"""More bytes than such a name and its number have."""
PIECE: Final = 1 << 20
"""Bytes of a file that are read at a time."""
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
    if model_type == "treelite_checkpoint":
        return 0
    binary = model_type == "xgboost" and apparent_type(path) in ("", "xgboost")
    with path.open("rb") as file:
        of_header = _of_header(file.read(_LONGEST)) if binary else 0
        file.seek(0)
        return max(of_header, max(_of_fields(file), default=0))


def _of_header(first: bytes) -> int:
    header = first.removeprefix(b"binf")
    return int(_HEADER.unpack_from(header)[2]) if len(header) >= _HEADER.size else 0


def _of_fields(file: BinaryIO) -> Iterator[int]:
    """Yield the numbers of a file. It is not mapped: one that shrinks meanwhile would end the process."""
    end = b""
    while piece := file.read(PIECE):
        content = end + piece
        at = content.find(_CLASSES)
        while at >= 0:
            if number := _NUMBER.match(content, at + len(_CLASSES)):
                yield int(number[1])
            at = content.find(_CLASSES, at + 1)
        # A number that the piece cuts off is found again, and whole.
        end = content[-_LONGEST:]
