"""What vLLM says of tokens, as the contract has it."""

from types import SimpleNamespace

from tests import tiny_llama

from argosy_runtime.backends.vllm.requests.deltas import TokenBytes, delta_of, merge, prompt_positions
from argosy_runtime.language import Delta, LogprobEntry


def output(text: str, tokens: list[int], **fields: object) -> SimpleNamespace:
    """Return a `CompletionOutput`."""
    values = {"cumulative_logprob": None, "logprobs": None, "finish_reason": None, "stop_reason": None, **fields}
    return SimpleNamespace(index=0, text=text, token_ids=tokens, **values)


def entry(text: str) -> SimpleNamespace:
    """Return a `Logprob`."""
    return SimpleNamespace(logprob=-1.0, rank=1, decoded_token=text)


class OnlyLists:
    """A tokenizer that takes lists of tokens alone, as some of vLLM's do."""

    def __init__(self) -> None:
        self._tokenizer = tiny_llama.byte_tokenizer()

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids))

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        assert isinstance(ids, list)
        return list(self._tokenizer.convert_ids_to_tokens(ids))


def test_a_part_of_a_character_has_its_bytes():
    tokenizer = OnlyLists()
    first, second = tiny_llama.byte_tokenizer().encode("é")
    bytes_of = TokenBytes(tokenizer)
    assert [bytes_of.of(token, text) for token, text in ((first, ""), (second, "\ufffd"))] == [b"\xc3", b"\xa9"]
    assert bytes_of.of(first, "") == b"\xc3"
    assert bytes_of.of(5, "word") == b"word"
    assert TokenBytes(None).of(5, None) is None


def test_positions_have_the_chosen_token_first():
    made = output("a", [7], logprobs=[{7: entry("a"), 3: entry("b")}], finish_reason="repetition")
    delta = delta_of(made, TokenBytes(None))
    assert list(delta.logprobs[0]) == [7, 3]
    assert delta.logprobs[0][7] == LogprobEntry(-1.0, 1, "a", [97])
    assert delta.finish_reason == "stop"
    assert prompt_positions([None, {7: entry("a")}], TokenBytes(None)) == [None, {7: LogprobEntry(-1.0, 1, "a", [97])}]
    assert prompt_positions(None, TokenBytes(None)) is None


def test_later_deltas_are_added_to_those_that_wait():
    before = Delta(0, "a", [1], cumulative_logprob=-1.0, logprobs=[{}])
    merge(before, Delta(0, "b", [2], "stop", "b", -2.0, [{}]))
    assert before == Delta(0, "ab", [1, 2], "stop", "b", -2.0, [{}, {}])
