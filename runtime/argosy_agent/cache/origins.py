"""The origin of a complete copy, in a file next to it: its own files do not have what the storage reported.

.origin-<key>.json      {"place": ..., "content": ..., "digest": ...}
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.transfer.stores.source import StoredFile

PREFIX = ".origin-"
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a copy. `location` is a hash of its URI and of the credentials that read it.

    `content` changes with an ETag or a digest of a file; empty where a file has none. `digest` is that of the status:
    the one that was declared or that the storage gives, else `listing:` and the digest of the files'
    names, sizes and ETags (times, where they have none); empty where files have neither.
    """

    location: str = ""
    content: str = ""
    digest: str = ""

    @classmethod
    def of(cls, location: str, files: Sequence[StoredFile], digest: str) -> "Origin":
        """Return the origin of a copy of these files."""
        content = _hash([(file.name, file.size, file.etag) for file in files]) if all(f.etag for f in files) else ""
        marked = content or (_hash([(f.name, f.size, f.mark) for f in files]) if all(f.mark for f in files) else "")
        return cls(location, content, digest or (marked and f"listing:{marked}"))


class Origins:
    """The origins of one cache folder's copies. A file that cannot be read or written is ignored."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def note(self, key: str, origin: Origin) -> None:
        """Record the origin of the copy of this key."""
        with suppress(OSError):
            write_json(self._path(key), {"place": origin.location, "content": origin.content, "digest": origin.digest})

    def of(self, key: str) -> Origin:
        """Return the recorded origin of a copy."""
        return _read(self._path(key))

    def alike(self, origin: Origin) -> Iterator[str]:
        """Yield the keys of complete copies from the same location with the same content."""
        for path in self._cache.glob(f"{PREFIX}*.json") if origin.content else ():
            other, key = _read(path), path.name.removeprefix(PREFIX).removesuffix(".json")
            if (other.location, other.content) == (origin.location, origin.content) and (self._cache / key).is_dir():
                yield key

    def sweep(self) -> None:
        """Remove the records of copies that are gone. Raises OSError."""
        for path in self._cache.glob(f"{PREFIX}*.json"):
            if not (self._cache / path.name.removeprefix(PREFIX).removesuffix(".json")).is_dir():
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._cache / f"{PREFIX}{key}.json"


def _read(path: Path) -> Origin:
    value = None
    with suppress(OSError):
        value = read_json(path)
    fields = {name: text for name, text in (value or {}).items() if isinstance(text, str)}
    return Origin(fields.get("place", ""), fields.get("content", ""), fields.get("digest", ""))


def _hash(listed: Sequence[tuple[str, int | None, str]]) -> str:
    return hashlib.sha256(json.dumps(sorted(listed, key=lambda file: file[0])).encode()).hexdigest()[:_DIGITS]
