"""Which copies go so that another fits. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the cache: its bytes, when it was last used (seconds), and whether it has to stay."""

    name: str
    size: int
    used_at: float
    stays: bool = False


def evicted(entries: Sequence[Entry], excess: int) -> list[Entry] | None:
    """Return the least recently used entries whose going frees at least `excess` bytes.

    None where all that may go would not be enough; then nothing should go.
    """
    gone: list[Entry] = []
    for entry in sorted((entry for entry in entries if not entry.stays), key=lambda entry: (entry.used_at, entry.name)):
        if excess <= 0:
            break
        if entry.size:
            gone.append(entry)
            excess -= entry.size
    return None if excess > 0 else gone
