"""What is wrong with a request, in OpenAI's words: message, param and code."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.generation import LanguageModel, chat_inference
from argosy_runtime.protocol.openai.requests import chat, completion

USER = {"role": "user", "content": "hello"}
DEEP = b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"a": %b1%b}}'


def error_of(decode: Any, body: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        decode(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert caught.value.status == 400
    assert caught.value.kind == "invalid_request_error"
    return caught.value


def chat_error(**fields: Any) -> ApiError:
    return error_of(chat.decode, {"model": "m", "messages": [USER], **fields})


def completion_error(**fields: Any) -> ApiError:
    return error_of(completion.decode, {"model": "m", "prompt": "p", **fields})


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("frequency_penalty", 2.1, "decimal_above_max_value"),
        ("frequency_penalty", "1", "invalid_type"),
        ("presence_penalty", -2.5, "decimal_below_min_value"),
        ("temperature", -0.1, "decimal_below_min_value"),
        ("temperature", 2.01, "decimal_above_max_value"),
        ("temperature", "hot", "invalid_type"),
        ("top_p", 1.5, "decimal_above_max_value"),
        ("n", 0, "integer_below_min_value"),
        ("n", 1000, "integer_above_max_value"),
        ("n", 1.5, "invalid_type"),
        ("n", True, "invalid_type"),
        ("seed", "x", "invalid_type"),
        ("seed", 2**63, "integer_above_max_value"),
        ("stop", 3, "invalid_type"),
        ("stop", [1], "invalid_type"),
        ("stop", ["a"] * 17, "array_above_max_length"),
        ("stop", "", "string_below_min_length"),
        ("stream", "yes", "invalid_type"),
        ("stream_options", {"include_usage": True}, "invalid_parameter_combination"),
        ("logit_bias", {"1": 101}, "decimal_above_max_value"),
        ("logit_bias", {"one": 1}, "invalid_value"),
        ("logit_bias", [1], "invalid_type"),
        ("user", 3, "invalid_type"),
        ("min_tokens", -1, "integer_below_min_value"),
        ("ignore_eos", 1, "invalid_type"),
        ("nonsense", 1, "unknown_parameter"),
        ("model", None, "invalid_type"),
        ("model", "", "string_below_min_length"),
        ("response_format", {"type": "xml"}, "invalid_value"),
        ("response_format", "json", "invalid_type"),
        ("structured_outputs", {}, "invalid_value"),
    ],
)
@pytest.mark.parametrize("error", [chat_error, completion_error])
def test_fields_of_both(error: Any, field: str, value: Any, code: str) -> None:
    raised = error(**{field: value})
    assert raised.param.split(".")[0].split("[")[0] == field
    assert raised.code == code
    assert f"'{field}" in raised.message


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"messages": None}, "messages", "invalid_type"),
        ({"messages": []}, "messages", "empty_array"),
        ({"messages": "hello"}, "messages", "invalid_type"),
        ({"messages": [{"role": "pirate", "content": "x"}]}, "messages[0].role", "invalid_value"),
        ({"messages": [USER, {"content": "x"}]}, "messages[1].role", "missing_required_parameter"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "invalid_type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", None),
        ({"messages": [{"role": "user", "content": "x", "mood": "glad"}]}, "messages[0].mood", "unknown_parameter"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id", "missing_required_parameter"),
        ({"logprobs": 3}, "logprobs", "invalid_type"),
        ({"top_logprobs": 3}, "top_logprobs", "invalid_parameter_combination"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "integer_above_max_value"),
        ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
        ({"max_completion_tokens": -1}, "max_completion_tokens", "integer_below_min_value"),
        ({"metadata": {"a": 1}}, "metadata", "invalid_type"),
        ({"metadata": {str(key): "" for key in range(17)}}, "metadata", "object_above_max_properties"),
        ({"metadata": {"k" * 65: ""}}, "metadata", "invalid_value"),
        ({"metadata": {"k": "v" * 513}}, "metadata", "string_above_max_length"),
        ({"reasoning_effort": "utmost"}, "reasoning_effort", "invalid_value"),
        ({"service_tier": "gold"}, "service_tier", "invalid_value"),
        ({"modalities": ["text", "audio"]}, "modalities", "unsupported_parameter"),
        ({"web_search_options": {}}, "web_search_options", "unsupported_parameter"),
        ({"moderation": {"model": "m"}}, "moderation", "unsupported_parameter"),
        ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter"),
        ({"function_call": "auto"}, "function_call", "unsupported_parameter"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "no spaces"}}},
            "response_format.json_schema.name",
            "invalid_value",
        ),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "missing_required_parameter"),
        (
            {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
            "structured_outputs",
            "invalid_parameter_combination",
        ),
        (
            {"add_generation_prompt": True, "continue_final_message": True},
            "continue_final_message",
            "invalid_parameter_combination",
        ),
    ],
)
def test_fields_of_chats(fields: dict[str, Any], param: str, code: str | None) -> None:
    raised = chat_error(**fields)
    assert raised.param == param
    assert code is None or raised.code == code


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"prompt": None}, "prompt", "missing_required_parameter"),
        ({"prompt": []}, "prompt", "empty_array"),
        ({"prompt": [[]]}, "prompt[0]", "empty_array"),
        ({"prompt": [1, "a"]}, "prompt", "invalid_type"),
        ({"prompt": [[1], "a"]}, "prompt", "invalid_type"),
        ({"prompt": [-1]}, "prompt[0]", "integer_below_min_value"),
        ({"prompt": 3}, "prompt", "invalid_type"),
        ({"prompt": ["p"] * 1025}, "prompt", "array_above_max_length"),
        ({"logprobs": True}, "logprobs", "invalid_type"),
        ({"logprobs": 21}, "logprobs", "integer_above_max_value"),
        ({"max_tokens": -1}, "max_tokens", "integer_below_min_value"),
        ({"suffix": "end"}, "suffix", "unsupported_parameter"),
        ({"best_of": 2, "n": 3}, "best_of", "invalid_parameter_combination"),
        ({"best_of": 2, "stream": True}, "best_of", "invalid_parameter_combination"),
        ({"prompt": ["p"] * 9, "n": 128}, "n", "invalid_parameter_combination"),
        ({"prompt": [[1]] * 52, "n": 19, "best_of": 20}, "best_of", "invalid_parameter_combination"),
        ({"best_of": 21}, "best_of", "integer_above_max_value"),
        ({"echo": "yes"}, "echo", "invalid_type"),
        ({"messages": [USER]}, "messages", "unknown_parameter"),
    ],
)
def test_fields_of_completions(fields: dict[str, Any], param: str, code: str) -> None:
    raised = error_of(prompts, {"model": "m", "prompt": "p", **fields})
    assert (raised.param, raised.code) == (param, code)


def test_a_request_may_have_many_prompts_or_many_choices() -> None:
    for count, n in ((1024, 1), (8, 128)):
        body = msgspec.json.encode({"model": "m", "prompt": ["p"] * count, "n": n})
        assert prompts(body) == ["p"] * count
    message = error_of(prompts, {"model": "m", "prompt": ["p"] * 9, "n": 128}).message
    assert message == (
        "Invalid 'n': 128 choices for each of 9 prompts are too many. A request generates at most 1024 choices: lower "
        "'n', or send the prompts in several requests."
    )


def prompts(body: bytes) -> list[Any]:
    return list(completion.decode(body).prompts())


def test_values_that_are_supported_are_named() -> None:
    assert "'system'" in chat_error(messages=[{"role": "pirate", "content": "x"}]).message
    assert "'xhigh'" in chat_error(reasoning_effort="utmost").message
    assert "'json_schema'" in chat_error(response_format={"type": "xml"}).message


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"model": "m", "messages": [', b"\xff", b'{"model": NaN}', DEEP % (b"[" * 100_000, b"")]
)
def test_json_that_breaks_off(body: bytes) -> None:
    assert error_of(chat.decode, body).code == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"3", b'"text"', b"null"])
def test_a_body_that_is_no_object(body: bytes) -> None:
    raised = error_of(chat.decode, body)
    assert (raised.param, raised.code) == (None, "invalid_type")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [field.encode_name for field in msgspec.structs.fields(chat.ChatRequest)]


@given(st.dictionaries(st.sampled_from(_FIELDS), _json, max_size=4))
def test_anything_is_read_or_refused_with_the_parameter(fields: dict[str, Any]) -> None:
    error = refusal(msgspec.json.encode({"model": "m", "messages": [USER], **fields}))
    if error is not None:
        assert error.status == 400
        assert error.param is not None
        assert error.param.split(".")[0].split("[")[0] in fields


def refusal(body: bytes) -> ApiError | None:
    """Return why a chat is refused."""
    try:
        chat_inference(LanguageModel("m", frozenset(("logprobs",)), decoupled=True), chat.decode(body), "r")
    except ApiError as error:
        return error
    return None


def test_a_body_may_be_nested() -> None:
    assert refusal(DEEP % (b"[" * 300, b"]" * 300)) is None
