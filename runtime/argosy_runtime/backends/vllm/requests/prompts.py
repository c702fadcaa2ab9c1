"""Prompts as token ids."""

from typing import Any

from argosy_runtime.errors import invalid
from argosy_runtime.language import Chat, ChatTemplate, Tokens
from argosy_runtime.language.requests import Prompt

LONG_TEXT = 1 << 14
"""Characters from which tokenizing takes longer than other requests should wait."""


class Prompts:
    """The tokenizer of one model, None for one without. `vocabulary` is its number of tokens.

    `trusts_templates`: requests may bring a chat template.
    """

    def __init__(self, model: str, tokenizer: Any, vocabulary: int, *, trusts_templates: bool = False) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._template = ChatTemplate(model, tokenizer, trusts_requests=trusts_templates)

    def is_slow(self, prompt: Prompt) -> bool:
        """Return whether reading a prompt may take long: a template is a program, and a text can be of any length."""
        return isinstance(prompt, Chat) or (isinstance(prompt, str) and len(prompt) > LONG_TEXT)

    def ids(self, prompt: Prompt) -> list[int]:
        """Return the tokens of a prompt. Blocks. Raises ServingError (INVALID_ARG)."""
        if isinstance(prompt, Tokens):
            return self._checked(prompt.ids)
        if self._tokenizer is None:
            raise invalid(f"model '{self._model}' has no tokenizer, so it takes input_ids only")
        if isinstance(prompt, Chat):
            # The template has written the special tokens.
            return list(self._tokenizer.encode(self._template.render(prompt), add_special_tokens=False))
        return list(self._tokenizer.encode(prompt))

    def text(self, prompt: Prompt, ids: list[int]) -> str:
        """Return the text of a prompt, for an answer that repeats it."""
        if isinstance(prompt, str):
            return prompt
        return "" if self._tokenizer is None else str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def _checked(self, ids: list[int]) -> list[int]:
        for token in ids:
            if not 0 <= token < self._vocabulary:
                raise invalid(
                    f"model '{self._model}': input id {token} is not in the vocabulary of {self._vocabulary} tokens"
                )
        return ids
