"""The responses that the server keeps, of all models together, within a number of bytes.

The one that was not read for the longest time goes first. Responses are kept as the bytes of the wire, copied out of
the frames that they came in.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from argosy_runtime.messages import InferResponse, ResponseTemplate
from argosy_runtime.tensors import Data

# Memory of an entry in addition to its outputs' data: its key, its place in the order, its objects.
ENTRY_BYTES: Final = 512


def _entry_bytes(raw: Sequence[Data]) -> int:
    return ENTRY_BYTES + sum([len(data) for data in raw])


class CachedResponse:
    """A response without model and id. `nbytes` is its share of the cache."""

    __slots__ = ("nbytes", "raw", "template")

    def __init__(self, template: ResponseTemplate, raw: Sequence[bytes]) -> None:
        self.template = template
        self.raw = raw
        self.nbytes = _entry_bytes(raw)

    def response(self) -> InferResponse:
        """Return a response of its own for one request."""
        return self.template.response(self.raw)


class ResponseCache:
    """Responses by the digests of their requests, of at most `capacity` bytes together, of which `used` are taken.

    Counts since the start: `hits` and `misses` of lookups, `evictions` of responses; and the nanoseconds of lookups and
    of insertions, which the callers measure.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity: Final = capacity
        self.used = 0
        self.hits = 0
        self.misses = 0
        self.evictions = 0
        self.lookup_ns = 0
        self.insertion_ns = 0
        self._entries: OrderedDict[bytes, CachedResponse] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def lookup(self, key: bytes) -> CachedResponse | None:
        """Return the response of a request, None where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
            self._entries.move_to_end(key)
        return entry

    def fits(self, raw: Sequence[Data]) -> bool:
        """Return whether a response with this data is not larger than the cache."""
        return _entry_bytes(raw) <= self.capacity

    def insert(self, key: bytes, entry: CachedResponse) -> bool:
        """Keep a response in place of those that were not read for the longest time.

        Return False where there is one already, or where it is larger than the cache.
        """
        if key in self._entries or entry.nbytes > self.capacity:
            return False
        self.used += entry.nbytes
        while self.used > self.capacity:
            _, oldest = self._entries.popitem(last=False)
            self.used -= oldest.nbytes
            self.evictions += 1
        self._entries[key] = entry
        return True
