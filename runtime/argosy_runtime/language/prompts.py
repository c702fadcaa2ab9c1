"""Prompts as token ids: what takes long is read on threads, so that no other request waits for it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from argosy_runtime.errors import invalid

from .chat import Chat, ChatTemplate
from .limits import check_tokens
from .requests import Prompt, Tokens

LONG_TEXT: Final = 1 << 14
"""Characters from which tokenizing takes longer than other requests should wait."""
THREADS: Final = 4
"""Threads that render chats and tokenize long texts: more than one, so that an endless template holds up no other."""


class Prompts:
    """The tokenizer of one model, None for one without. `vocabulary` is its number of tokens, 0 if it is unknown.

    `trusts_templates`: whether requests may bring a chat template.
    """

    def __init__(self, model: str, tokenizer: Any, vocabulary: int, *, trusts_templates: bool = False) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._template = ChatTemplate(model, tokenizer, trusts_requests=trusts_templates)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=f"{model}-prompts")

    def prepare(self, prompt: Prompt, work: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Call `work`, which reads the prompt, and `fail` with its error: on a thread where reading may take long."""
        if _is_slow(prompt):
            self._threads.submit(_attempt, work, fail)
        else:
            _attempt(work, fail)

    def ids(self, prompt: Prompt) -> list[int]:
        """Return the tokens of a prompt. Blocks. Raises ServingError (INVALID_ARG)."""
        ids = self._ids(prompt)
        check_tokens(ids, self._vocabulary)
        return ids

    def text(self, prompt: Prompt, ids: list[int]) -> str:
        """Return the text of a prompt, for an answer that repeats it."""
        if isinstance(prompt, str):
            return prompt
        return "" if self._tokenizer is None else str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def close(self) -> None:
        """Wait until all prompts are read. None may come afterwards."""
        self._threads.shutdown()

    def _ids(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, Tokens):
            return prompt.ids
        if isinstance(prompt, Chat):
            # The template writes the special tokens, and says if there is no tokenizer.
            text = self._template.render(prompt)
            return list(self._tokenizer.encode(text, add_special_tokens=False))
        if self._tokenizer is None:
            raise invalid(f"model '{self._model}' has no tokenizer, so it takes input_ids, not text_input")
        return list(self._tokenizer.encode(prompt))


def _is_slow(prompt: Prompt) -> bool:
    """Return whether reading a prompt may take long: a template is a program, and a text can be of any length."""
    return isinstance(prompt, Chat) or (isinstance(prompt, str) and len(prompt) > LONG_TEXT)


def _attempt(work: Callable[[], None], fail: Callable[[Exception], None]) -> None:
    try:
        work()
    except Exception as error:
        fail(error)
