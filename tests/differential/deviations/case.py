"""The deviation that a differential case shows."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Deviation:
    """A deviation by the name that it has in the lists (`*.toml`), and the whole answer of Argosy to a case."""

    name: str
    answer: Any
