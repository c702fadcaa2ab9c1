"""Decompressing what clients send: never beyond a limit, and on the event loop only what takes a moment.

How long it takes depends on both sizes, and how large something becomes is known only once it is there. So it is tried
up to OFFLOAD_BYTES, and what becomes more is decompressed by a thread.
"""

import zlib
from typing import Final

from argosy_runtime.tensors import Data

OFFLOAD_BYTES: Final = 1 << 18
"""What has more bytes than this, compressed or not, is (de)compressed by a thread."""


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
