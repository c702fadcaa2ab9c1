"""A target: a function that takes any bytes and raises nothing, and inputs that are worth changing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FINDINGS = Path(__file__).with_name("findings")
"""Inputs that once failed, in a folder for each target. They are committed, and run with the tests."""
_LONGEST_SEED = 4096


@dataclass(frozen=True)
class Target:
    """A function under test. `seeds` returns inputs that it takes, some right and some wrong."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]

    def inputs(self) -> dict[str, bytes]:
        """Return the seeds that are short enough to be changed, and the findings, by name."""
        seeds = {sha256(seed).hexdigest()[:16]: seed for seed in self.seeds() if len(seed) <= _LONGEST_SEED}
        return seeds | {path.name: path.read_bytes() for path in sorted((FINDINGS / self.name).glob("*"))}
