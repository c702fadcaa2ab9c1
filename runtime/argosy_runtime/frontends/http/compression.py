"""gzip and deflate bodies, both ways."""

import math
import zlib

from argosy_runtime.errors import internal, invalid, unsupported
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES, inflated
from argosy_runtime.tensors import Data

SUPPORTED = "gzip, deflate"
UNKNOWN_TYPE = "Unsupported compression type"
_AUTODETECT = 15 | 32
_WINDOWS = {"gzip": 15 | 16, "deflate": 15}


def is_identity(content_encoding: str | None) -> bool:
    """Return whether a body is as it is."""
    return not content_encoding or content_encoding == "identity"


def decompress(body: Data, content_encoding: str, limit: int) -> bytes:
    """Return a body as it was before. Raises ServingError where that cannot be, or is more than `limit` bytes."""
    plain = _decompressed(body, content_encoding, limit)
    if plain is None:
        raise invalid(
            f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. "
            "Use --http-max-input-size to increase the limit."
        )
    return plain


def decompress_at_once(body: Data, content_encoding: str, limit: int) -> bytes | None:
    """Return a body as it was before, None where a thread is to decompress it, which takes longer.

    Raises ServingError as `decompress`.
    """
    if len(body) > OFFLOAD_BYTES:
        return None
    if limit <= OFFLOAD_BYTES:
        return decompress(body, content_encoding, limit)
    return _decompressed(body, content_encoding, OFFLOAD_BYTES)


def _decompressed(body: Data, content_encoding: str, limit: int) -> bytes | None:
    if content_encoding not in _WINDOWS:
        raise unsupported(UNKNOWN_TYPE)
    if not body:
        raise invalid("nothing to be decompressed")
    try:
        return inflated(body, _AUTODETECT, limit)
    except zlib.error as error:
        raise internal(f"encountered inconsistent stream state during decompression: {error}") from None
    except EOFError:
        raise invalid("the compressed body is cut short") from None


def compress(body: bytes, encoding: str) -> bytes:
    """Return a body in the encoding that `preferred` chose."""
    stream = zlib.compressobj(wbits=_WINDOWS[encoding])
    return stream.compress(body) + stream.flush()


def preferred(accept_encoding: str | None) -> str | None:
    """Return the encoding a client weighs most: "gzip", "deflate", or None for none. The first wins among equals."""
    if not accept_encoding:
        return None
    best, best_weight = "identity", 0.0
    for offer in accept_encoding.split(","):
        name, _, weight_text = offer.partition(";q=")
        name = name.strip()
        try:
            weight = float(weight_text) if weight_text else 1.0
        except ValueError:
            continue
        if math.isinf(weight):
            continue
        if name in ("identity", *_WINDOWS) and weight > best_weight:
            best, best_weight = name, weight
    return None if best == "identity" else best
