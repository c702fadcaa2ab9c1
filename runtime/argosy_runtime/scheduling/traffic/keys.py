"""Keys of requests: those with equal keys are answered by the same version, on every server alike."""

import hashlib
import math
from collections.abc import Sequence
from typing import Final

from argosy_runtime.messages import InferRequest, Parameter
from argosy_runtime.modelconfig.parameters.traffic import Sticky

_DIGEST_BYTES: Final = 8
_RANGE: Final = float(1 << (8 * _DIGEST_BYTES))


def key_of(request: InferRequest, sticky: Sequence[Sticky]) -> str:
    """Return the first of the keys that a request has, with its value; "" where it has none of them."""
    for key in sticky:
        value = _value(request, key)
        if value is not None and value != "":
            return f"{key.header or key.parameter}={value}"
    return ""


def _value(request: InferRequest, key: Sticky) -> Parameter | None:
    origin = request.origin
    if key.header:
        return None if origin is None else origin.header(key.header)
    value = request.parameters.get(key.parameter)
    return origin.field(key.parameter) if value is None and origin is not None else value


def version_of(key: str, model: str, weights: Sequence[tuple[int, int]]) -> int:
    """Return the version of a key; `weights` are pairs of a version and its weight, one of them above 0.

    It is weighted rendezvous hashing: where weights change, a key moves only away from a version that has less weight,
    or to one that has more. Each version takes other keys first.
    """
    best, lowest = 0, math.inf
    for version, weight in weights:
        if weight:
            distance = -math.log(_uniform(f"{model}\0{version}\0{key}")) / weight
            if distance < lowest:
                best, lowest = version, distance
    return best


def _uniform(text: str) -> float:
    """Return a number above 0 and at most 1 that depends on a text alone."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    return (int.from_bytes(digest) + 1) / _RANGE
