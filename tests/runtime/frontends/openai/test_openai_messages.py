"""What is wrong with a request, over HTTP: status, form of the error, the parameter, the code."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from tests.runtime.frontends.openai.conftest import Served

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.language import Chat, ChatTemplate
from argosy_runtime.protocol.openai.requests.chat import ChatRequest
from argosy_runtime.protocol.openai.requests.completion import CompletionRequest

USER = {"role": "user", "content": "hello"}
PATHS: dict[str, dict[str, Any]] = {
    "chat/completions": {"model": "talker", "messages": [USER]},
    "completions": {"model": "talker", "prompt": "hello"},
    "responses": {"model": "talker", "input": "hello"},
}
BOTH: dict[str, list[tuple[Any, str]]] = {
    "model": [(3, "invalid_type"), ("", "string_below_min_length")],
    "frequency_penalty": [(2.5, "decimal_above_max_value")],
    "presence_penalty": [(-2.5, "decimal_below_min_value")],
    "logit_bias": [
        ({"1": 1e9}, "decimal_above_max_value"),
        ({"one": 1}, "invalid_value"),
        ({"99999999999": 1}, "invalid_value"),
    ],
    "n": [(1000, "integer_above_max_value"), (0, "integer_below_min_value"), (1.5, "invalid_type")],
    "response_format": [({"type": "xml"}, "invalid_value"), ("json", "invalid_type")],
    "seed": [
        (2**63, "integer_above_max_value"),
        (10**30, "integer_above_max_value"),
        (-(2**63) - 1, "integer_below_min_value"),
        (0.5, "invalid_type"),
    ],
    "stop": [(["x"] * 100, "array_above_max_length"), ("", "string_below_min_length"), ([1], "invalid_type")],
    "stream": [("yes", "invalid_type")],
    "stream_options": [({"include_usage": True}, "invalid_parameter_combination")],
    "temperature": [(-1e-9, "decimal_below_min_value"), (2.5, "decimal_above_max_value"), ("hot", "invalid_type")],
    "top_p": [(1.1, "decimal_above_max_value"), (-0.1, "decimal_below_min_value")],
    "user": [(3, "invalid_type")],
    "top_k": [(-2, "integer_below_min_value"), (2**31, "invalid_value")],
    "min_p": [(1.5, "decimal_above_max_value")],
    "repetition_penalty": [(0, "decimal_below_min_value"), (1e300, "invalid_value")],
    "min_tokens": [(-1, "integer_below_min_value"), (2**40, "invalid_value")],
    "ignore_eos": [(1, "invalid_type")],
    "stop_token_ids": [([-1], "integer_below_min_value"), ([2**40], "invalid_value")],
    "include_stop_str_in_output": [("no", "invalid_type")],
    "skip_special_tokens": [("no", "invalid_type")],
    "spaces_between_special_tokens": [("no", "invalid_type")],
    "truncate_prompt_tokens": [(-2, "integer_below_min_value"), (0, "invalid_value")],
    "allowed_token_ids": [([], "invalid_value"), ("1", "invalid_type")],
    "bad_words": [([""], "invalid_value"), ("word", "invalid_type")],
    "structured_outputs": [({}, "invalid_value"), ({"regex": "a", "choice": ["b"]}, "invalid_value")],
    "priority": [(2**40, "invalid_value"), ("high", "invalid_type")],
    "cache_salt": [("", "string_below_min_length")],
}
CHAT: dict[str, list[tuple[Any, str]]] = {
    **BOTH,
    "messages": [([], "empty_array"), ("hello", "invalid_type"), ([{"role": "king", "content": ""}], "invalid_value")],
    "logprobs": [(3, "invalid_type")],
    "top_logprobs": [(21, "integer_above_max_value"), (3, "invalid_parameter_combination")],
    "max_completion_tokens": [(0, "integer_below_min_value"), (2**40, "invalid_value")],
    "max_tokens": [
        (0, "integer_below_min_value"),
        (2**40, "invalid_value"),
        (10**30, "integer_above_max_value"),
    ],
    "tools": [([{"type": "web_search"}], "invalid_value")],
    "tool_choice": [("auto", "invalid_parameter_combination")],
    "parallel_tool_calls": [(True, "invalid_parameter_combination")],
    "reasoning_effort": [("utmost", "invalid_value")],
    "verbosity": [("silent", "invalid_value")],
    "chat_template_kwargs": [([], "invalid_type")],
    "add_generation_prompt": [(1, "invalid_type")],
    "continue_final_message": [(1, "invalid_type")],
    "metadata": [({"a": 1}, "invalid_type")],
    "store": [("no", "invalid_type")],
    "safety_identifier": [("x" * 129, "string_above_max_length")],
    "service_tier": [("gold", "invalid_value")],
    "prompt_cache_key": [(1, "invalid_type")],
    "prompt_cache_options": [([], "invalid_type")],
    "prompt_cache_retention": [("1h", "invalid_value")],
    "prediction": [("text", "invalid_type")],
    "modalities": [(["text", "audio"], "unsupported_parameter")],
    "audio": [({"voice": "alloy"}, "unsupported_parameter")],
    "moderation": [({}, "unsupported_parameter")],
    "web_search_options": [({}, "unsupported_parameter")],
    "functions": [([], "unsupported_parameter")],
    "function_call": [("none", "unsupported_parameter")],
}
COMPLETION: dict[str, list[tuple[Any, str]]] = {
    **BOTH,
    "prompt": [([], "empty_array"), (3, "invalid_type"), ([1, "a"], "invalid_type")],
    "best_of": [(21, "integer_above_max_value")],
    "echo": [("yes", "invalid_type")],
    "logprobs": [(21, "integer_above_max_value"), (True, "invalid_type")],
    "max_tokens": [(-1, "integer_below_min_value"), (2**40, "invalid_value")],
    "suffix": [("end", "unsupported_parameter")],
}


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url) as client:
        yield client


def refusal(http: httpx.Client, path: str, body: Any) -> dict[str, Any]:
    """Return the error with which a body is refused, which clients can correct."""
    answer = http.post(f"/{path}", content=body if isinstance(body, bytes) else json.dumps(body))
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    (error,) = answer.json().values()
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    return dict(error)


@pytest.mark.parametrize(("kind", "table"), [(ChatRequest, CHAT), (CompletionRequest, COMPLETION)])
def test_all_fields_of_requests_are_listed(kind: type, table: dict[str, Any]) -> None:
    assert table.keys() == {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize(
    ("path", "name", "value", "code"),
    [
        (path, name, value, code)
        for path, table in (("chat/completions", CHAT), ("completions", COMPLETION))
        for name, wrong in table.items()
        for value, code in wrong
    ],
)
def test_a_wrong_value_is_refused_by_name(http: httpx.Client, path: str, name: str, value: Any, code: str) -> None:
    error = refusal(http, path, {**PATHS[path], name: value})
    assert error["param"].split(".")[0].split("[")[0] == name
    assert error["code"] == code
    assert f"'{name}" in error["message"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", [b"", b'{"model": "talker", ', b"\xff\xfe", b"--boundary\r\nContent-Disposition"])
def test_a_body_that_is_no_json(http: httpx.Client, path: str, body: bytes) -> None:
    error = refusal(http, path, body)
    assert (error["param"], error["code"]) == (None, "invalid_json")


@pytest.mark.parametrize("content", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_json_of_any_content_type_is_read(http: httpx.Client, content: str) -> None:
    body = json.dumps(PATHS["completions"]).encode()
    assert http.post("/completions", content=body, headers={"content-type": content}).status_code == 200


@pytest.mark.parametrize("half", [rb"\ud800", rb"\udc00", rb"\ud83d and \ude42"])
def test_half_of_a_surrogate_pair_is_shown_with_its_parameter(http: httpx.Client, half: bytes) -> None:
    body = b'{"model": "talker", "messages": [{"role": "user", "content": "\\ud83d\\ude42 %b"}]}' % half
    error = refusal(http, "chat/completions", body)
    assert (error["param"], error["code"]) == ("messages[0].content", "invalid_json")
    assert half[:6].decode() in error["message"]
    assert refusal(http, "completions", b'{"prompt": "%b' % half)["param"] is None


class Tokenizer:
    """A tokenizer whose template fails."""

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        raise ValueError("roles must alternate")


def failure(tokenizer: Tokenizer | None) -> ServingError:
    """Return the error of rendering a chat."""
    with pytest.raises(ServingError) as raised:
        ChatTemplate("talker", tokenizer).render(Chat([USER]))
    return raised.value


PROBLEMS = [
    (failure(None), "has no tokenizer"),
    (failure(Tokenizer(None)), "has no chat template"),
    (failure(Tokenizer("template")), "roles must alternate"),
    (invalid("the prompt is empty: it has no tokens"), "is empty"),
    (invalid("model 'talker': input id 7 is not in the vocabulary of 3 tokens"), "vocabulary"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "param"), [*zip(PATHS, ("messages", "prompt", "input"), strict=True)])
@pytest.mark.parametrize(("problem", "words"), PROBLEMS, ids=[words for _, words in PROBLEMS])
def test_a_problem_of_the_prompt_names_it(
    http: httpx.Client, served: Served, path: str, param: str, problem: ServingError, words: str, stream: bool
) -> None:
    served.plane.script.refusal = problem
    error = refusal(http, path, {**PATHS[path], "stream": stream})
    assert (error["param"], error["code"]) == (param, "invalid_value")
    assert words in error["message"]


SCHEMA = {"name": "a", "schema": {"type": "nonsense"}}
FUNCTION = {"name": "f", "parameters": {"type": "nonsense"}}


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("chat/completions", {"response_format": {"type": "json_schema", "json_schema": SCHEMA}}, "response_format"),
        ("chat/completions", {"structured_outputs": {"regex": "("}}, "structured_outputs"),
        (
            "chat/completions",
            {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required"},
            "tools",
        ),
        ("completions", {"response_format": {"type": "json_schema", "json_schema": SCHEMA}}, "response_format"),
        ("completions", {"structured_outputs": {"regex": "("}}, "structured_outputs"),
        ("responses", {"text": {"format": {"type": "json_schema", **SCHEMA}}}, "text.format"),
        ("responses", {"tools": [{"type": "function", **FUNCTION}], "tool_choice": "required"}, "tools"),
    ],
)
def test_a_constraint_that_cannot_be_compiled_is_named(
    http: httpx.Client, served: Served, path: str, fields: dict[str, Any], param: str
) -> None:
    served.plane.script.refusal = invalid("Invalid JSON grammar specification.")
    error = refusal(http, path, {**PATHS[path], **fields})
    assert (error["param"], error["code"]) == (param, "invalid_value")


@pytest.mark.parametrize(
    ("path", "fields", "engines", "param"),
    [
        ("chat/completions", {"max_completion_tokens": 9}, "max_tokens", "max_completion_tokens"),
        ("chat/completions", {"max_tokens": 9}, "max_tokens", "max_tokens"),
        ("chat/completions", {"logprobs": True, "top_logprobs": 9}, "logprobs", "top_logprobs"),
        ("responses", {"max_output_tokens": 9}, "max_tokens", "max_output_tokens"),
        ("responses", {"top_logprobs": 9}, "logprobs", "top_logprobs"),
    ],
)
def test_errors_have_the_requests_own_names(
    http: httpx.Client, served: Served, path: str, fields: dict[str, Any], engines: str, param: str
) -> None:
    served.plane.script.refusal = invalid(f"sampling_parameters: '{engines}' is 9, expected less")
    error = refusal(http, path, {**PATHS[path], **fields})
    assert (error["param"], error["message"]) == (param, f"'{param}' is 9, expected less")


TOOLS = {"tools": [{"type": "function", "function": {"name": "f"}}]}
NO_GRAMMAR = "model 'm': backend 'transformers' has no 'structured_outputs'; leave it out"
TOO_MANY = (
    "this model's maximum context length is 9 tokens, but the prompt has 5 tokens, and 'max_tokens' asks for 7; "
    "ask for at most 4"
)


@pytest.mark.parametrize(
    ("path", "fields", "problem", "param", "words"),
    [
        (
            "chat/completions",
            {**TOOLS, "tool_choice": "required"},
            NO_GRAMMAR,
            "tool_choice",
            "leave tool_choice at auto",
        ),
        (
            "responses",
            {"tools": [{"type": "function", "name": "f"}], "tool_choice": "required"},
            NO_GRAMMAR,
            "tool_choice",
            "backend 'transformers' does not constrain its text, .* or use vllm or tensorrt_llm$",
        ),
        (
            "chat/completions",
            {"response_format": {"type": "json_object"}},
            NO_GRAMMAR,
            "response_format",
            "has no 'response_format'; leave it out",
        ),
        (
            "completions",
            {"min_p": 0.1},
            "model 'm': backend 'tensorrtllm' has no 'min_p' here, unless llm_args.yaml has x; leave it out",
            "min_p",
            "has no 'min_p' here, unless",
        ),
        ("chat/completions", {"max_tokens": 7}, TOO_MANY, "max_tokens", "'max_tokens' asks for 7; ask for at most 4"),
        (
            "chat/completions",
            {"max_completion_tokens": 7},
            TOO_MANY,
            "max_completion_tokens",
            "'max_completion_tokens'",
        ),
        ("responses", {"max_output_tokens": 20}, TOO_MANY, "max_output_tokens", "'max_output_tokens'"),
        ("completions", {"max_tokens": 7}, TOO_MANY, "max_tokens", "'max_tokens'"),
    ],
)
def test_what_an_engine_cannot_do_has_the_requests_own_name(
    http: httpx.Client, served: Served, path: str, fields: dict[str, Any], problem: str, param: str, words: str
) -> None:
    served.plane.script.refusal = invalid(problem)
    error = refusal(http, path, {**PATHS[path], **fields})
    assert error["param"] == param
    assert re.search(words, error["message"])


@pytest.mark.parametrize(
    "problem",
    [
        "model 'chat template': too busy",
        "adapter 'guided-json-schema': its rank is 9",
        "the grammar cannot be compiled",
    ],
)
def test_no_parameter_is_guessed(http: httpx.Client, served: Served, problem: str) -> None:
    served.plane.script.refusal = invalid(problem)
    error = refusal(http, "chat/completions", {**PATHS["chat/completions"], **TOOLS})
    assert (error["param"], error["message"]) == (None, problem)
    tools = [{"type": "function", "name": "f"}]
    assert refusal(http, "responses", {**PATHS["responses"], "tools": tools})["param"] is None


def test_a_variable_that_is_none_of_the_template_is_named(http: httpx.Client, served: Served) -> None:
    chat = Chat([USER], chat_template_kwargs={"messages": []})
    with pytest.raises(ServingError) as raised:
        ChatTemplate("talker", Tokenizer("template")).render(chat)
    served.plane.script.refusal = raised.value
    assert refusal(http, "chat/completions", PATHS["chat/completions"])["param"] == "chat_template_kwargs"


def test_an_endless_template_is_the_servers_fault(http: httpx.Client, served: Served) -> None:
    served.plane.script.refusal = internal("the chat template of model 'talker' did not end within 5 s")
    answer = http.post("/chat/completions", json=PATHS["chat/completions"])
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
