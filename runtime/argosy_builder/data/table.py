"""What every reader gives, and what it raises: columns by name, one entry a sample."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_builder.contract import Array

Columns = Mapping[str, Sequence[Any] | Array]
"""Each column's samples. The name is empty where a file has one array without a name."""


class DataError(Exception):
    """A data file is not what it should be; the message says what about it, without the file's name."""
