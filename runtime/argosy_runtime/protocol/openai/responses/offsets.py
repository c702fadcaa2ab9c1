"""Where in a text its tokens begin, also of tokens that are parts of characters or do not appear in it."""

from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


class TextOffsets:
    """Finds the start of each token in a text that comes in pieces.

    A token whose bytes are next in the text is there; its offset is the number of whole characters before it, so that
    the parts of one character share one. A token whose bytes are not next is hidden, as special tokens are: it has the
    offset of what follows. Until the text is complete it may lag behind its tokens, by the bytes of an unfinished
    character or by what may become a stop sequence.
    """

    __slots__ = ("_ahead", "_characters", "_complete", "_text")

    def __init__(self) -> None:
        # Text that no token has been found for yet; bytes of tokens that the text still lacks.
        self._text = b""
        self._ahead = b""
        self._characters = 0
        self._complete = False

    def add(self, text: str, complete: bool) -> None:
        """Add the next piece of the text; `complete`: it is the last."""
        self._text += text.encode()
        self._complete = complete
        ahead = self._ahead
        if not ahead:
            return
        if self._text.startswith(ahead):
            self._advance(len(ahead))
            self._ahead = b""
        elif complete or not ahead.startswith(self._text):
            # The tokens were hidden after all.
            self._ahead = b""

    def offset(self, token: bytes) -> int:
        """Return the offset of the next token, in characters."""
        begun = 1 if token and _continues(token[0]) else 0
        if self._ahead:
            offset = self._characters + _characters(self._ahead) - begun
            self._ahead += token
            return offset
        skipped, size = self._match(token)
        if size:
            self._advance(skipped)
            offset = self._characters - begun
            self._advance(size)
            return offset
        if not self._complete and len(self._text) < len(token) and token.startswith(self._text):
            self._ahead = token
            return self._characters - (begun if self._text else 0)
        return self._characters

    def _match(self, token: bytes) -> tuple[int, int]:
        """Return how many bytes of the text are to be skipped before the token, and how many it has there; 0 where it
        is not next.
        """
        text = self._text
        if not token:
            return 0, 0
        if text.startswith(token):
            return 0, len(token)
        bare = token.lstrip(b" ")
        if bare and not self._characters and len(bare) < len(token) and text.startswith(bare):
            # Tokenizers that write spaces before words drop the first.
            return 0, len(bare)
        skipped = 0
        while text.startswith(_REPLACEMENT, skipped):
            # Stands for the bytes of tokens before, which are no character.
            skipped += len(_REPLACEMENT)
        return (skipped, len(token)) if skipped and text.startswith(token, skipped) else (0, 0)

    def _advance(self, size: int) -> None:
        self._characters += _characters(self._text[:size])
        self._text = self._text[size:]


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _characters(data: bytes) -> int:
    return sum(not _continues(byte) for byte in data)
