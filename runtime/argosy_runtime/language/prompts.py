"""Prompts as token ids: what takes long is read on threads, so that no other request waits for it."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from argosy_runtime.errors import cancelled, internal, invalid, unavailable

from .chat import LONGEST_SECONDS, Chat, ChatTemplate
from .limits import check_tokens
from .requests import Prompt, Tokens

_log = logging.getLogger(__name__)

LONG_TEXT: Final = 1 << 14
"""Characters from which tokenizing takes longer than other requests should wait."""
THREADS: Final = 4
"""Threads that render chats and tokenize long texts: more than one, so that an endless template holds up no other."""

_Use = Callable[[list[int]], None]
_Fail = Callable[[Exception], None]


class _Reading:
    """A prompt to read on a thread. It is settled once: used, failed, or given up."""

    def __init__(self, prompt: Prompt, use: _Use, fail: _Fail, is_cancelled: Callable[[], bool]) -> None:
        self.prompt = prompt
        self.use = use
        self.fail = fail
        self.is_cancelled = is_cancelled
        self.is_settled = False
        self._lock = threading.Lock()

    def settle(self) -> bool:
        """Return whether this is the first call."""
        with self._lock:
            first, self.is_settled = not self.is_settled, True
        return first


class Prompts:
    """The tokenizer of one model, None for one without. `vocabulary` is its number of tokens, 0 if it is unknown.

    `trusts_templates`: whether requests may bring a chat template.
    """

    def __init__(self, model: str, tokenizer: Any, vocabulary: int, *, trusts_templates: bool = False) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._template = ChatTemplate(model, tokenizer, trusts_requests=trusts_templates)
        self._queue: queue.SimpleQueue[_Reading | None] = queue.SimpleQueue()
        self._open: dict[_Reading, None] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def prepare(self, prompt: Prompt, use: _Use, fail: _Fail, is_cancelled: Callable[[], bool]) -> None:
        """Call `use` with the tokens of a prompt, or `fail` with the error of reading or using them.

        Both are called on a thread where reading may take long, else before this returns. `is_cancelled` says, once
        it is a queued prompt's turn, whether it is worth reading.
        """
        reading = _Reading(prompt, use, fail, is_cancelled)
        if _is_slow(prompt):
            self._put(reading)
        else:
            self._read(reading)

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

    def close(self, seconds: float = LONGEST_SECONDS) -> None:
        """Wait for the prompts that are queued, and after so many seconds give up those that are not read."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._queue.put(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        for reading in list(self._open):
            self._give_up(reading)

    def _put(self, reading: _Reading) -> None:
        """Queue a prompt. The threads start with the first one, and do not hold up the end of the process."""
        with self._lock:
            if self._closed:
                self._give_up(reading)
                return
            while len(self._threads) < THREADS:
                name = f"{self._model}-prompts-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()
            self._open[reading] = None
            self._queue.put(reading)

    def _run(self) -> None:
        while (reading := self._queue.get()) is not None:
            try:
                self._read_queued(reading)
            except Exception:
                _log.exception("model '%s': the error of a prompt could not be sent", self._model)
            finally:
                del self._open[reading]

    def _read_queued(self, reading: _Reading) -> None:
        if reading.is_settled:
            return
        if not reading.is_cancelled():
            self._read(reading)
        elif reading.settle():
            reading.fail(cancelled())

    def _read(self, reading: _Reading) -> None:
        try:
            ids = self.ids(reading.prompt)
        except BaseException as error:  # a tokenizer in Rust panics with one that is no Exception
            if reading.settle():
                reading.fail(self._failure(error))
            return
        if not reading.settle():
            return
        try:
            reading.use(ids)
        except BaseException as error:  # the text of a prompt comes from the tokenizer, too
            reading.fail(self._failure(error))

    def _failure(self, error: BaseException) -> Exception:
        if isinstance(error, Exception):
            return error
        return internal(f"model '{self._model}': its tokenizer failed: {type(error).__name__}: {error}")

    def _give_up(self, reading: _Reading) -> None:
        if reading.settle():
            reading.fail(unavailable(f"model '{self._model}' is being unloaded"))

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
