"""API keys, of which only hashes are known, and their file."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from .errors import ApiError

KEYS_FLAG: Final = "--openai-api-keys-file"
_LINE: Final = re.compile(r"(?:(?P<name>[A-Za-z0-9._-]+):)?sha256:(?P<digest>[0-9a-fA-F]{64})")
_BEARER: Final = "bearer "
INVALID_KEY: Final = "invalid_api_key"


class KeyFileError(ValueError):
    """The text of a file of keys is wrong."""


class NoKeysError(KeyFileError):
    """A file of keys can be read, and has none."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The SHA-256 hashes of the keys that are accepted."""

    digests: Sequence[bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "ApiKeys":
        """Read `sha256:HEX` or `NAME:sha256:HEX` from each line; empty ones and those with # do not count.

        Raises KeyFileError, which shows no key; NoKeysError where there is none.
        """
        digests: list[bytes] = []
        for number, line in enumerate(text.splitlines(), 1):
            entry = line.strip()
            if not entry or entry.startswith("#"):
                continue
            match = _LINE.fullmatch(entry)
            if match is None:
                raise KeyFileError(
                    f"line {number} is not of the form sha256:<64 hexadecimal digits>, or <name>:sha256:…"
                )
            digests.append(bytes.fromhex(match["digest"]))
        if not digests:
            raise NoKeysError("it holds no key: each line is sha256:<64 hexadecimal digits>, or <name>:sha256:…")
        return cls(tuple(digests))

    def check(self, authorization: str | None) -> None:
        """Raise ApiError unless the value of the header Authorization has a key. The time it takes reveals nothing."""
        if authorization is None or authorization[: len(_BEARER)].lower() != _BEARER:
            raise ApiError(
                401,
                "You didn't provide an API key. Send it in the header 'Authorization: Bearer <key>'.",
                code=INVALID_KEY,
            )
        digest = hashlib.sha256(authorization[len(_BEARER) :].strip().encode("latin-1")).digest()
        accepted = False
        for accepted_digest in self.digests:
            accepted |= hmac.compare_digest(accepted_digest, digest)
        if not accepted:
            raise ApiError(401, "Incorrect API key provided.", code=INVALID_KEY)
