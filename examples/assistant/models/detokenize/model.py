"""Last stage: token ids become text, or a refusal where the prompt was flagged.

It holds no state, so it works on a whole answer and on each chunk of a streamed one: byte-level pieces decode
without knowing what came before. A flagged prompt has a token budget of 0, which the language model answers
once, with nothing: that one empty answer becomes the refusal.
"""

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

REFUSAL = "I can't help with that."


class TritonPythonModel:
    """`output_ids` INT32 [-1], `flagged` BOOL [1, 1] → `text` BYTES [1, 1], `refused` BOOL [1, 1]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the language model's tokenizer from this version's folder."""
        self.pieces = Tokenizer.from_file(str(Path(__file__).parent / "tokenizer.json"))

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        ids = _input(request, "output_ids").reshape(-1).tolist()
        refused = bool(_input(request, "flagged").reshape(-1)[0])
        text = self._text(ids, refused)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("text", np.array([[text.encode()]], dtype=np.object_)),
                pb_utils.Tensor("refused", np.array([[refused]], dtype=np.bool_)),
            ]
        )

    def _text(self, ids: list[int], refused: bool) -> str:
        if refused:
            return "" if ids else REFUSAL
        return self.pieces.decode(ids, skip_special_tokens=True)


def _input(request: Any, name: str) -> Any:
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()
