"""A language model that answers with the logits of tokens, whatever computes them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from argosy_builder.accuracy.language import IDS, LOGITS, MASK, token_log_likelihood
from argosy_builder.contract import Array

Logits = Callable[[Sequence[int]], Array]
"""The logits [tokens, vocabulary] of tokens; each foretells the token after."""
Tokens = Callable[[str], Sequence[int]]


class LanguageModel:
    """`logits` and `tokens` are the model's and the tokenizer's; of a text `longest` tokens are read."""

    def __init__(self, logits: Logits, tokens: Tokens, longest: int) -> None:
        self._logits, self._tokens, self._longest = logits, tokens, longest

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the log-likelihood of a text and the number of its tokens. Raises BuildError."""
        ids = list(self._tokens(text))[: self._longest]
        if len(ids) < 2:
            return 0.0, 0
        return token_log_likelihood(self._logits(ids), np.asarray(ids))

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the logits of `input_ids`, [tokens] or [batch, tokens]; where `attention_mask` is 0 they are 0."""
        ids = inputs[IDS]
        mask = inputs.get(MASK, np.ones_like(ids))
        if ids.ndim == 1:
            return {LOGITS: self._row(ids, mask)}
        return {LOGITS: np.stack([self._row(*row) for row in zip(ids, mask, strict=True)])}

    def _row(self, ids: Array, mask: Array) -> Array:
        real = mask.astype(bool)
        answered = self._logits([int(token) for token in ids[real]]).astype(np.float32)
        row = np.zeros((len(ids), answered.shape[-1]), np.float32)
        row[real] = answered
        return row
