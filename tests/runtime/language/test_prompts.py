"""Prompts become tokens, and none that takes long holds up another."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import Chat, Tokens
from argosy_runtime.language.prompts import LONG_TEXT, THREADS, Prompts

CHAT = Chat([{"role": "user", "content": "ab"}])


def stays() -> bool:
    """Return False: the client has not gone."""
    return False


class ByteTokenizer:
    """A tokenizer whose tokens are bytes; 0 begins a text. A template waits until it may go on."""

    chat_template = "template"

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def apply_chat_template(self, conversation: Any, **_: Any) -> str:
        self.goes_on.wait()
        return f"\0{conversation[0]['content']}"

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + list(text.encode())

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return bytes(token for token in ids if token or not skip_special_tokens).decode()


@pytest.fixture
def tokenizer() -> ByteTokenizer:
    return ByteTokenizer()


@pytest.fixture
def prompts(tokenizer: ByteTokenizer) -> Iterator[Prompts]:
    made = Prompts("m", tokenizer, 100)
    yield made
    tokenizer.goes_on.set()
    made.close()


def test_every_kind_of_prompt_has_tokens_and_text(prompts: Prompts, tokenizer: ByteTokenizer):
    tokenizer.goes_on.set()
    assert prompts.ids(CHAT) == prompts.ids("ab") == [0, 97, 98]
    assert prompts.ids(Tokens([98])) == [98]
    assert prompts.text("ab", [98]) == "ab"
    assert prompts.text(CHAT, [0, 97]) == "a"
    assert prompts.text(Tokens([98]), [98]) == "b"


def test_a_template_that_does_not_end_holds_up_no_other_prompt(prompts: Prompts, tokenizer: ByteTokenizer):
    ids: list[list[int]] = []
    rendered = threading.Event()

    def take(rendered_ids: list[int]) -> None:
        ids.append(rendered_ids)
        rendered.set()

    prompts.prepare(CHAT, take, pytest.fail, stays)
    prompts.prepare("a", ids.append, pytest.fail, stays)
    assert ids == [[0, 97]]
    tokenizer.goes_on.set()
    assert rendered.wait(30)
    assert ids[1:] == [[0, 97, 98]]


def test_a_long_text_is_read_on_a_thread(prompts: Prompts):
    assert THREADS > 1
    threads: list[threading.Thread] = []
    for text in ("a", "a" * (LONG_TEXT + 1)):
        prompts.prepare(text, lambda _: threads.append(threading.current_thread()), pytest.fail, stays)
    prompts.close()
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()


@pytest.mark.parametrize("prompt", [CHAT, "~", Tokens([100])])
def test_a_prompt_that_cannot_be_read_says_why(tokenizer: ByteTokenizer, prompt: Any):
    tokenizer.goes_on.set()
    errors: list[Exception] = []
    small = Prompts("m", tokenizer, 50)
    small.prepare(prompt, pytest.fail, errors.append, stays)
    small.close()
    (error,) = errors
    assert isinstance(error, ServingError)
    assert "is not in the vocabulary of 50 tokens" in error.message


def test_an_error_of_what_uses_a_prompt_fails_it(prompts: Prompts):
    errors: list[Exception] = []

    def use(_: list[int]) -> None:
        raise KeyError

    prompts.prepare("a", use, errors.append, stays)
    assert [type(error) for error in errors] == [KeyError]


def test_endless_templates_do_not_hold_up_the_end(prompts: Prompts, tokenizer: ByteTokenizer):
    errors: list[ServingError] = []
    for _ in range(THREADS + 1):
        prompts.prepare(CHAT, pytest.fail, errors.append, stays)
    prompts.close(seconds=0.0)
    prompts.prepare(CHAT, pytest.fail, errors.append, stays)
    tokenizer.goes_on.set()
    prompts.close()
    assert [error.message for error in errors] == ["model 'm' is being unloaded"] * (THREADS + 2)
    assert {error.kind for error in errors} == {ErrorKind.UNAVAILABLE}


@pytest.mark.parametrize(("prompt", "other"), [("a", "text_input"), (CHAT, "messages")])
def test_without_a_tokenizer_a_model_takes_tokens(prompt: Any, other: str):
    prompts = Prompts("m", None, 100)
    assert prompts.ids(Tokens([1])) == [1]
    assert prompts.text(Tokens([1]), [1]) == ""
    with pytest.raises(ServingError, match=f"so it takes input_ids, not {other}"):
        prompts.ids(prompt)
    prompts.close()


class Panic(BaseException):
    """What a tokenizer in Rust panics with, which is no Exception."""


class Panics(ByteTokenizer):
    """A tokenizer that panics at texts that begin with `!`."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        if text.startswith("!"):
            raise Panic("no such index")
        return super().encode(text, add_special_tokens)


def test_a_tokenizer_that_panics_fails_its_prompt_and_no_thread_ends():
    prompts = Prompts("m", Panics(), 0)
    failures: list[Exception] = []
    read = threading.Event()
    for _ in range(THREADS):
        prompts.prepare("!" * (LONG_TEXT + 1), pytest.fail, failures.append, stays)
    prompts.prepare("a" * (LONG_TEXT + 1), lambda _: read.set(), failures.append, stays)
    assert read.wait(60)
    prompts.prepare("!", pytest.fail, failures.append, stays)
    prompts.close()
    expected = "model 'm': its tokenizer failed: Panic: no such index"
    assert [str(failure) for failure in failures] == [expected] * (THREADS + 1)


def test_a_panic_of_what_uses_a_prompt_fails_it(prompts: Prompts):
    failures: list[Exception] = []

    def use(_: list[int]) -> None:
        raise Panic("no such token")

    for text in ("a", "a" * (LONG_TEXT + 1)):
        prompts.prepare(text, use, failures.append, stays)
    prompts.close()
    assert [str(failure) for failure in failures] == ["model 'm': its tokenizer failed: Panic: no such token"] * 2


def test_an_error_that_cannot_be_sent_ends_no_thread(tokenizer: ByteTokenizer, caplog: pytest.LogCaptureFixture):
    prompts = Prompts("m", tokenizer, 50)
    read = threading.Event()

    def fail(error: Exception) -> None:
        raise OSError("the connection is closed")

    for _ in range(THREADS):
        prompts.prepare("~" * (LONG_TEXT + 1), pytest.fail, fail, stays)
    prompts.prepare("\1" * (LONG_TEXT + 1), lambda _: read.set(), pytest.fail, stays)
    assert read.wait(60)
    prompts.close()
    assert caplog.text.count("OSError: the connection is closed") == THREADS


def test_a_prompt_in_the_queue_is_not_read_for_a_client_that_has_gone(prompts: Prompts, tokenizer: ByteTokenizer):
    read: list[list[int]] = []
    failures: list[ServingError] = []
    gone = threading.Event()
    for _ in range(THREADS):
        prompts.prepare(CHAT, read.append, pytest.fail, stays)
    prompts.prepare(CHAT, pytest.fail, failures.append, gone.is_set)
    gone.set()
    tokenizer.goes_on.set()
    prompts.close()
    assert len(read) == THREADS
    assert [failure.kind for failure in failures] == [ErrorKind.CANCELLED]
