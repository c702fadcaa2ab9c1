"""Decompression of request bodies: up to a limit, and on the event loop only if they are small.

The time depends on both sizes, and the decompressed size is unknown until the end. So up to OFFLOAD_BYTES are
decompressed on the loop; a larger body is decompressed again in a thread. These threads do nothing else, since threads
that read files may block on a disk.
"""

import asyncio
import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from argosy_runtime.cpus import cpu_limit
from argosy_runtime.tensors import Data

OFFLOAD_BYTES: Final = 1 << 18
"""Larger bodies, compressed or not, are (de)compressed by a thread."""

_THREADS: Final = ThreadPoolExecutor(cpu_limit() or os.cpu_count(), "compression")


def in_thread(work: Callable[..., bytes], *arguments: Any) -> "asyncio.Future[bytes]":
    """Run a (de)compression in a thread, and return its future."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, work, *arguments)


def inflated(packed: Data, window_bits: int, limit: int) -> bytes | None:
    """Return the decompressed bytes; None where they are more than `limit`, after which no more are made.

    `window_bits` are zlib's. Raises zlib.error, and EOFError where it is cut short.
    """
    stream = zlib.decompressobj(window_bits)
    plain = stream.decompress(packed, limit + 1)
    if len(plain) > limit:
        return None
    if not stream.eof:
        raise EOFError
    return plain
