"""JSON lines: an object a sample, by the tensors' names."""

from pathlib import Path
from typing import Any

import orjson

from .table import Columns, DataError


def read_jsonl(path: Path) -> Columns:
    """Return a column a key, which every line must have. Empty lines are passed over. Raises DataError with the
    line.
    """
    columns: dict[str, list[Any]] = {}
    samples = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            entry = _object(line, number)
            if samples and entry.keys() != columns.keys():
                raise DataError(f"line {number} has {', '.join(entry)}, the lines before {', '.join(columns)}")
            for key, value in entry.items():
                columns.setdefault(key, []).append(value)
            samples += 1
    return columns


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(f"line {number} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"line {number} is no object; write one a sample, by the inputs' names")
    return value
