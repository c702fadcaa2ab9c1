"""Decompressing what clients send: never beyond a limit, and on the event loop only what takes a moment.

How long it takes depends on both sizes, and how large something becomes is known only once it is there. So it is tried
up to OFFLOAD_BYTES, and what becomes more is decompressed by a thread. These threads do nothing else: those that read
files may hang with a disk.
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
"""What has more bytes than this, compressed or not, is (de)compressed by a thread."""

_THREADS: Final = ThreadPoolExecutor(cpu_limit() or os.cpu_count(), "compression")


def in_thread(work: Callable[..., bytes], *arguments: Any) -> "asyncio.Future[bytes]":
    """Return what (de)compresses something in a thread."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, work, *arguments)


def inflated(packed: Data, window_bits: int, limit: int) -> bytes | None:
    """Return what was compressed, None where that is more than `limit` bytes, of which no more are made.

    `window_bits` are zlib's. Raises zlib.error, and EOFError where it is cut short.
    """
    stream = zlib.decompressobj(window_bits)
    plain = stream.decompress(packed, limit + 1)
    if len(plain) > limit:
        return None
    if not stream.eof:
        raise EOFError
    return plain
