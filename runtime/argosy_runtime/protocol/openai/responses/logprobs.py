"""Probabilities of tokens, in the forms of chat completions and of completions.

Tokens that are not whole characters have no text of their own. They are written as OpenAI does, as `bytes:\\xe2\\x82`,
so that two of them are never taken for one; `bytes` has their bytes.
"""

from collections.abc import Sequence
from typing import Any, Final

from argosy_runtime.language import LogprobEntry
from argosy_runtime.language.deltas import Position

from .offsets import TextOffsets

# What OpenAI writes for a probability of 0, since JSON has no infinity.
_LEAST: Final = -9999.0
_NO_RANK: Final = 1 << 31


def token_text(entry: LogprobEntry) -> str:
    """Return a token as text."""
    if entry.bytes is None:
        return entry.decoded_token or ""
    raw = bytes(entry.bytes)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join([f"\\x{byte:02x}" for byte in raw])


def token_bytes(entry: LogprobEntry) -> bytes:
    """Return what a token adds to the text."""
    return (entry.decoded_token or "").encode() if entry.bytes is None else bytes(entry.bytes)


def _likeliest(position: Position, most: int) -> list[LogprobEntry]:
    """Return the `most` likeliest entries; the chosen token is among them only if its rank is."""
    return sorted(position.values(), key=lambda entry: entry.rank or _NO_RANK)[:most]


def chat_content(positions: Sequence[Position], most: int) -> list[dict[str, Any]]:
    """Return the tokens of a chat completion with up to `most` alternatives each."""
    return [
        {**_written(chosen), "top_logprobs": [_written(entry) for entry in _likeliest(position, most)]}
        for position in positions
        for chosen in list(position.values())[:1]
    ]


def _written(entry: LogprobEntry) -> dict[str, Any]:
    return {"token": token_text(entry), "bytes": entry.bytes, "logprob": _finite(entry)}


def _finite(entry: LogprobEntry) -> float:
    return _LEAST if entry.logprob is None else max(entry.logprob, _LEAST)


class CompletionLogprobs:
    """The object `logprobs` of one choice of a completion, from the start of its text on.

    `most` alternatives are listed for each token, and the token itself.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._offsets = TextOffsets()
        self._tokens: list[str] = []
        self._logprobs: list[float | None] = []
        self._tops: list[dict[str, float] | None] = []
        self._text_offsets: list[int] = []

    def text(self, text: str, complete: bool) -> None:
        """Add the next piece of the text, before its tokens; `complete`: it is the last."""
        self._offsets.add(text, complete)

    def prompt(self, text: str, positions: Sequence[Position | None]) -> None:
        """Take the tokens of a prompt with which `text` begins. The first has no probability, and may have no entry."""
        entries = [position for position in positions if position]
        if len(entries) < len(positions):
            rest = b"".join([token_bytes(_chosen(position)) for position in entries])
            first = _before(text.encode(), rest)
            self._tokens.append(first.decode("utf-8", "replace"))
            self._text_offsets.append(self._offsets.offset(first))
            self._logprobs.append(None)
            self._tops.append(None)
        self.tokens(entries)

    def tokens(self, positions: Sequence[Position]) -> None:
        """Take the next tokens."""
        for position in positions:
            if not position:
                continue
            chosen = _chosen(position)
            self._tokens.append(token_text(chosen))
            self._text_offsets.append(self._offsets.offset(token_bytes(chosen)))
            self._logprobs.append(_finite(chosen))
            listed: dict[str, float] = {}
            for entry in [*_likeliest(position, self._most), chosen]:
                listed.setdefault(token_text(entry), _finite(entry))
            self._tops.append(listed)

    def pop(self) -> dict[str, Any]:
        """Return the object with everything since the last call."""
        document = {
            "text_offset": self._text_offsets,
            "token_logprobs": self._logprobs,
            "tokens": self._tokens,
            "top_logprobs": self._tops,
        }
        self._tokens, self._logprobs, self._tops, self._text_offsets = [], [], [], []
        return document


def _before(text: bytes, rest: bytes) -> bytes:
    """Return what stands before the tokens `rest` of a prompt with which `text` begins or that it is."""
    if text.endswith(rest):
        return text.removesuffix(rest)
    before, separator, _ = text.partition(rest)
    return before if separator else b""


def _chosen(position: Position) -> LogprobEntry:
    return next(iter(position.values()))
