"""Text of tokens that come one by one: every piece ends at a whole character."""

from collections.abc import Callable, Sequence
from typing import Final

Decode = Callable[[Sequence[int]], str]

_UNFINISHED: Final = "\ufffd"  # a tokenizer's text of the first bytes of an incomplete character
# So many tokens without a piece are decoded again with each further one; beyond, only when there are twice as many.
_PATIENCE: Final = 8


class StreamedText:
    """The text of tokens that come one by one, in pieces that joined are the text of all of them.

    A window of the last tokens is decoded, so that a long text costs no more for each token than a short one. The
    window begins with tokens whose text has been sent: a token's text depends on the one before it.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._sent = 0  # characters
        self._begin = 0
        self._context = ""
        self._read = 0
        self._next_try = 0

    def next(self, tokens: Sequence[int]) -> str:
        """Return the new text of `tokens`, which are all so far; "" while a character is incomplete."""
        if len(tokens) < self._next_try:
            return ""
        window = tokens[self._begin :]
        text = self._decode(window)
        new = text[len(self._context) :]
        if not new or text.endswith(_UNFINISHED):
            waiting = len(tokens) - self._read
            self._next_try = len(tokens) + (1 if waiting < _PATIENCE else waiting)
            return ""
        self._sent += len(new)
        self._begin, self._read = self._read, len(tokens)
        self._context = self._decode(tokens[self._begin :])
        return new

    def last(self, tokens: Sequence[int]) -> str:
        """Return the rest of the text of `tokens`, once they are complete."""
        return self._decode(tokens)[self._sent :]
