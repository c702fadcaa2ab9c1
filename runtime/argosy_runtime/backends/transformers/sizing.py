"""The size of the key-value cache.

Pure arithmetic; unsized, the library would take most of the machine's memory.
"""

import math
import re
from dataclasses import dataclass

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import invalid

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_BYTES = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a kind of device gets where the configuration is silent: `sequences` of `length` tokens, within
    `memory` bytes.
    """

    page_size: int
    max_batch_tokens: int
    sequences: int
    length: int
    memory: int


ON_CPU = Defaults(page_size=32, max_batch_tokens=256, sequences=8, length=2048, memory=2**30)
ON_GPU = Defaults(page_size=256, max_batch_tokens=2048, sequences=16, length=8192, memory=4 * 2**30)


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Blocks of `page_size` tokens, and the most tokens one forward pass takes."""

    page_size: int
    num_blocks: int
    max_batch_tokens: int

    @property
    def tokens(self) -> int:
        """Number of tokens in the cache, which bounds one request's prompt and answer together."""
        return self.page_size * self.num_blocks


def cache_size(
    model: str, parameters: Parameters, bytes_per_token: int, max_positions: int, defaults: Defaults
) -> CacheSize:
    """Return the size asked for by `num_blocks`, else by `kv_cache_memory`, else a default derived from the model.

    Raises ServingError (INVALID_ARG) for a parameter that cannot be read or leaves no room for one block.
    """
    page_size = parameters.integer("page_size", defaults.page_size, minimum=4)
    bytes_per_block = bytes_per_token * page_size
    if "num_blocks" in parameters:
        blocks = parameters.integer("num_blocks", 0, minimum=1)
    elif "kv_cache_memory" in parameters:
        text = parameters.text("kv_cache_memory")
        blocks = memory_bytes(model, text) // bytes_per_block
        if blocks < 1:
            raise invalid(
                f"model '{model}': kv_cache_memory '{text}' holds no block of {page_size} tokens, "
                f"which takes {bytes_per_block} bytes"
            )
    else:
        tokens = min(max_positions, defaults.length) * defaults.sequences
        blocks = max(min(math.ceil(tokens / page_size), defaults.memory // bytes_per_block), 1)
    batch = parameters.integer("max_batch_tokens", defaults.max_batch_tokens, minimum=1)
    return CacheSize(page_size, blocks, batch)


def memory_bytes(model: str, text: str) -> int:
    """Return the bytes of a text such as 1048576, 512MiB or 2GB. Raises ServingError for anything else."""
    match = _BYTES.match(text)
    if match is None:
        raise invalid(
            f"model '{model}': parameter 'kv_cache_memory' is '{text}', expected bytes, such as 2147483648 or 2GiB"
        )
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])
