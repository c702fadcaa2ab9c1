"""What a whole copy came from, in a file next to it: of its own files it would tell nothing that storages say.

.origin-<key>.json      {"place": ..., "content": ..., "digest": ...}
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.transfer.stores.source import StoredFile

PREFIX = ".origin-"
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Origin:
    """One copy's. `place` is its URI and whose credentials read it, hashed.

    `content` is another where an ETag or a digest of a file is; empty where a file has none. `digest` is what the
    status tells: the one that was declared or that the storage gives, else `listing:` and the digest of the files'
    names, sizes and ETags (times, where they have none); empty where files have neither.
    """

    place: str = ""
    content: str = ""
    digest: str = ""

    @classmethod
    def of(cls, place: str, files: Sequence[StoredFile], digest: str) -> "Origin":
        """Return the origin of a copy of these files."""
        content = _hash([(file.name, file.size, file.etag) for file in files]) if all(f.etag for f in files) else ""
        marked = content or (_hash([(f.name, f.size, f.mark) for f in files]) if all(f.mark for f in files) else "")
        return cls(place, content, digest or (marked and f"listing:{marked}"))


class Origins:
    """The origins of one cache folder's copies. A file that cannot be read or written says nothing."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def note(self, key: str, origin: Origin) -> None:
        """Remember where the copy of this key came from."""
        with suppress(OSError):
            write_json(self._path(key), asdict(origin))

    def of(self, key: str) -> Origin:
        """Return what is remembered of a copy."""
        return _read(self._path(key))

    def alike(self, origin: Origin) -> Iterator[str]:
        """Yield the keys of whole copies that came from the same place and hold the same content."""
        for path in self._cache.glob(f"{PREFIX}*.json") if origin.content else ():
            known, key = _read(path), path.name.removeprefix(PREFIX).removesuffix(".json")
            if (known.place, known.content) == (origin.place, origin.content) and (self._cache / key).is_dir():
                yield key

    def sweep(self) -> None:
        """Forget those whose copy is gone. Raises OSError."""
        for path in self._cache.glob(f"{PREFIX}*.json"):
            if not (self._cache / path.name.removeprefix(PREFIX).removesuffix(".json")).is_dir():
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._cache / f"{PREFIX}{key}.json"


def _read(path: Path) -> Origin:
    value = None
    with suppress(OSError):
        value = read_json(path)
    said = {name: text for name, text in (value or {}).items() if isinstance(text, str)}
    return Origin(said.get("place", ""), said.get("content", ""), said.get("digest", ""))


def _hash(listed: Sequence[tuple[str, int | None, str]]) -> str:
    return hashlib.sha256(json.dumps(sorted(listed, key=lambda each: each[0])).encode()).hexdigest()[:_DIGITS]
