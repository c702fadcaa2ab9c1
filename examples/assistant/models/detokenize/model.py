"""Last stage: token ids become text, or a refusal where the prompt was flagged.

It holds no state, so it works on a whole answer and on each chunk of a streamed one: a byte-level piece is some bytes,
whatever came before. A character of several bytes may come in two chunks; joined, the chunks are the whole text, byte
for byte. A flagged prompt has a token budget of 0, which the language model answers once, with nothing: that one empty
answer becomes the refusal.
"""

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

REFUSAL = b"I can't help with that."


class TritonPythonModel:
    """`output_ids` INT32 [-1], `flagged` BOOL [1, 1] → `text` BYTES [1, 1], `refused` BOOL [1, 1]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the language model's tokenizer from this version's folder, and note the bytes of each of its pieces."""
        pieces = Tokenizer.from_file(str(Path(__file__).parent / "tokenizer.json"))
        special = {number for number, piece in pieces.get_added_tokens_decoder().items() if piece.special}
        of = _bytes_of_characters()
        words = {number: piece for piece, number in pieces.get_vocab().items() if number not in special}
        self.bytes = {number: bytes(of[character] for character in piece) for number, piece in words.items()}

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        ids = _input(request, "output_ids").reshape(-1).tolist()
        refused = bool(_input(request, "flagged").reshape(-1)[0])
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("text", np.array([[self._text(ids, refused)]], dtype=np.object_)),
                pb_utils.Tensor("refused", np.array([[refused]], dtype=np.bool_)),
            ]
        )

    def _text(self, ids: list[int], refused: bool) -> bytes:
        if refused:
            return b"" if ids else REFUSAL
        return b"".join(self.bytes.get(number, b"") for number in ids)


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character of a byte-level piece stands for.

    Printable bytes stand for themselves; the others are the characters from U+0100 on, in order.
    """
    alphabet = set(ByteLevel.alphabet())
    plain = [byte for byte in range(256) if chr(byte) in alphabet]
    shifted = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(shifted)}


def _input(request: Any, name: str) -> Any:
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()
