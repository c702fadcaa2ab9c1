"""What is asked of a server: the models of `benchmarks/models`, and loads upon them as perf_analyzer takes them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "models"
PROTOCOLS = ("http", "grpc")
CONCURRENCIES = (1, 8, 32, 128)
SIZES = (64, 4096, 602112)
"""Bytes of the one input tensor: a row of features, a page of text, an image of three by 224 by 224 FP32 numbers."""

STREAMED = frozenset({"stream"})
"""Decoupled models, which only gRPC's stream serves."""
NEEDS = {"ensemble": ("identity",), "bls": ("identity",)}
"""Models that another model calls."""
_BYTES_PER_ELEMENT = 4


@dataclass(frozen=True)
class Load:
    """`concurrency` clients that each send `model` a tensor of `bytes` over `protocol` and wait for its answer.

    With `shared_memory` the tensors of both are in the system's shared memory.
    """

    model: str
    protocol: str
    concurrency: int
    bytes: int
    shared_memory: bool = False

    def arguments(self) -> list[str]:
        """Return perf_analyzer's arguments for it."""
        shape = f"INPUT0:{self.bytes // _BYTES_PER_ELEMENT}"
        arguments = [
            "-m",
            self.model,
            "-i",
            self.protocol,
            "--concurrency-range",
            str(self.concurrency),
            "--shape",
            shape,
        ]
        if self.shared_memory:
            arguments += ["--shared-memory=system", f"--output-shared-memory-size={self.bytes}"]
        return [*arguments, "--streaming", "--async"] if self.model in STREAMED else arguments


def models() -> tuple[str, ...]:
    """Return the names of all models."""
    return tuple(sorted(folder.name for folder in MODELS.iterdir()))


def needed(names: Iterable[str]) -> set[str]:
    """Return these models, and those that they call."""
    chosen = set(names)
    return chosen.union(*(NEEDS.get(name, ()) for name in chosen))


def loads(
    names: Iterable[str],
    protocols: Iterable[str],
    concurrencies: Iterable[int],
    sizes: Iterable[int],
    shared_memory: bool = False,
) -> Iterator[Load]:
    """Yield every combination that can be requested."""
    for name, protocol, size, concurrency in product(names, protocols, sizes, concurrencies):
        if name not in STREAMED or protocol == "grpc":
            yield Load(name, protocol, concurrency, size, shared_memory)
