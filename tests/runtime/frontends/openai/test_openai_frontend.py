"""OpenAI's API by the official client and by bare HTTP: what people do with it, and what goes wrong."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from tests.runtime.frontends.openai.conftest import LIMIT, Served
from tests.runtime.frontends.openai.engine import CONTEXT, FAILURE, tokens_of
from tests.waiting import PATIENCE_S

from argosy_runtime.errors import invalid, unavailable
from argosy_runtime.language import Chat

HELLO: Any = [{"role": "user", "content": "hello"}]


def text_of(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url) as http_client:
        yield http_client


def test_a_chat_is_answered_with_its_usage(client: openai.OpenAI, served: Served) -> None:
    answer = client.chat.completions.create(model="talker", messages=HELLO)
    text = served.plane.script.text
    assert answer.choices[0].message.content == text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(tokens_of("<user>hello"))
    assert answer.usage.completion_tokens == len(tokens_of(text)) + 1
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id == answer.id


def test_a_stream_is_never_torn(client: openai.OpenAI, served: Served) -> None:
    stream = client.chat.completions.create(
        model="talker", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert text_of(chunks) == served.plane.script.text
    assert "\ufffd" not in text_of(chunks)
    assert len(chunks) > 10
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(tokens_of(served.plane.script.text)) + 1
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_does_not_stream_answers_streams_too(client: openai.OpenAI, served: Served, stream: bool) -> None:
    answer = client.chat.completions.create(model="whole", messages=HELLO, stream=stream)
    text = text_of(answer) if stream else answer.choices[0].message.content
    assert text == served.plane.script.text


def test_the_history_of_a_chat_goes_on(client: openai.OpenAI, served: Served) -> None:
    history: Any = list(HELLO)
    answer = client.chat.completions.create(model="talker", messages=history)
    history += [answer.choices[0].message, {"role": "user", "content": "and?"}]
    client.chat.completions.create(model="talker", messages=history)
    prompt = served.plane.script.seen[-1].prompt
    assert isinstance(prompt, Chat)
    assert [message["role"] for message in prompt.messages] == ["user", "assistant", "user"]
    assert prompt.messages[1]["content"] == served.plane.script.text


def test_several_choices(client: openai.OpenAI, served: Served) -> None:
    answer = client.chat.completions.create(model="talker", messages=HELLO, n=3, temperature=0)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    chunks = client.chat.completions.create(model="talker", messages=HELLO, n=2, stream=True)
    texts = {0: "", 1: ""}
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert set(texts.values()) == {served.plane.script.text}


def test_stop_and_length(client: openai.OpenAI) -> None:
    stopped = client.chat.completions.create(model="talker", messages=HELLO, stop=[" aus"]).choices[0]
    assert (stopped.message.content, stopped.finish_reason) == ("Grüße", "stop")
    cut = client.chat.completions.create(model="talker", messages=HELLO, max_tokens=1).choices[0]
    assert (cut.message.content, cut.finish_reason) == ("Gr", "length")


def test_log_probabilities_join_to_the_text(client: openai.OpenAI, served: Served) -> None:
    answer = client.chat.completions.create(model="talker", messages=HELLO, logprobs=True, top_logprobs=5, stop="🙂")
    assert answer.choices[0].logprobs is not None
    content = answer.choices[0].logprobs.content or []
    raw = b"".join(bytes(token.bytes or []) for token in content[:-1])
    assert raw.decode() == answer.choices[0].message.content
    assert all(len(token.top_logprobs) == 5 for token in content[:-1])
    assert min(top.logprob for token in content for top in token.top_logprobs) == -9999.0


def test_completions(client: openai.OpenAI, served: Served) -> None:
    answer = client.completions.create(model="talker", prompt=["one", "two"], echo=True, n=2, max_tokens=2, logprobs=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in answer.choices] == ["oneGrü", "oneGrü", "twoGrü", "twoGrü"]


def test_a_completion_of_nothing_is_the_echo_with_its_probabilities(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="talker", prompt="grün", echo=True, max_tokens=0, logprobs=1)
    (choice,) = answer.choices
    assert (choice.text, choice.finish_reason) == ("grün", "length")
    assert choice.logprobs is not None
    assert choice.logprobs.tokens == ["gr", "ü", "n"]
    assert choice.logprobs.text_offset == [0, 2, 3]
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 0)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_of_tokens_is_echoed_as_text(client: openai.OpenAI, stream: bool) -> None:
    answer: Any = client.completions.create(
        model="talker", prompt=[ord("a"), ord("b")], echo=True, max_tokens=1, stream=stream
    )
    text = "".join(chunk.choices[0].text for chunk in answer) if stream else answer.choices[0].text
    assert text == "abGr"


def test_structured_output_reaches_the_engine(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = '{"answer": 42}'
    schema: Any = {"name": "a", "schema": {"type": "object"}, "strict": True}
    answer = client.chat.completions.create(
        model="talker", messages=HELLO, response_format={"type": "json_schema", "json_schema": schema}
    )
    assert json.loads(answer.choices[0].message.content or "") == {"answer": 42}
    constraint = served.plane.script.seen[0].sampling.structured_outputs
    assert constraint is not None
    assert constraint.json == {"type": "object"}


def test_models(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert [model.id for model in models] == ["busy", "pirate", "talker", "whole"]
    assert client.models.retrieve("talker") == next(model for model in models if model.id == "talker")
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nobody")
    assert caught.value.code == "model_not_found"


def test_an_adapter_is_a_model(client: openai.OpenAI, served: Served) -> None:
    assert client.chat.completions.create(model="pirate", messages=HELLO).model == "pirate"
    assert served.plane.requests[-1].model_name == "pirate"
    assert client.models.retrieve("pirate").to_dict()["parent"] == "talker"


def test_a_name_that_changes_hands_is_never_stale(client: openai.OpenAI, served: Served) -> None:
    """A name is first an adapter's, then a language model's, another model's, of nothing, and an adapter's again."""
    adapter = served.plane.configs["pirate"]
    first = client.models.retrieve("pirate")
    try:
        served.plane.configs["pirate"] = served.plane.language("pirate")
        taken = client.models.retrieve("pirate")
        assert ("parent" in taken.to_dict(), taken.created >= first.created) == (False, True)
        served.plane.configs["pirate"] = served.plane.configs["number"]
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="pirate", messages=HELLO)
        assert "pirate" not in [model.id for model in client.models.list().data]
        del served.plane.configs["pirate"]
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("pirate")
    finally:
        served.plane.configs["pirate"] = adapter
    assert client.models.retrieve("pirate").to_dict()["parent"] == "talker"


@pytest.mark.parametrize(
    ("model", "error", "code"),
    [
        ("nobody", openai.NotFoundError, "model_not_found"),
        ("number", openai.NotFoundError, "model_not_found"),
        ("gone", openai.NotFoundError, "model_not_found"),
        ("untouched", openai.NotFoundError, "model_not_found"),
        ("coming", openai.InternalServerError, "model_loading"),
        ("broken", openai.InternalServerError, "model_not_ready"),
        ("asleep", openai.InternalServerError, "service_unavailable"),
        ("busy", openai.RateLimitError, "rate_limit_exceeded"),
    ],
)
def test_models_that_do_not_answer(client: openai.OpenAI, model: str, error: Any, code: str) -> None:
    for stream in (False, True):
        with pytest.raises(error) as caught:
            client.chat.completions.create(model=model, messages=HELLO, stream=stream)
        assert caught.value.code == code
        assert caught.value.type
    if error is not openai.NotFoundError:
        assert caught.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize("model", ["talker", "pirate"])
def test_a_model_that_cannot_be_loaded_again_says_why(client: openai.OpenAI, served: Served, model: str) -> None:
    client.chat.completions.create(model=model, messages=HELLO)
    config = served.plane.configs.pop(model)
    served.plane.unavailable[model] = FAILURE
    try:
        with pytest.raises(openai.InternalServerError, match=FAILURE) as caught:
            client.chat.completions.create(model=model, messages=HELLO)
        assert (caught.value.status_code, caught.value.code) == (503, "model_not_ready")
        with pytest.raises(openai.InternalServerError, match=FAILURE):
            client.models.retrieve(model)
    finally:
        served.plane.configs[model] = config


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="talker", messages=[{"role": "user", "content": "long" * CONTEXT}], stream=stream
        )
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="talker", prompt="long" * CONTEXT, stream=stream)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "prompt")


def test_what_the_engine_refuses_names_the_parameter(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="talker", messages=HELLO, max_tokens=3, extra_body={"min_tokens": 5})
    assert caught.value.param == "min_tokens"


def test_an_error_in_the_middle_of_a_stream_is_an_event(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.breaks_after = 3
    chunks = []
    with pytest.raises(openai.APIError, match="EngineDeadError") as caught:
        chunks.extend(client.chat.completions.create(model="talker", messages=HELLO, stream=True))
    assert caught.value.type == "server_error"
    served.plane.script.breaks_after = None
    assert client.chat.completions.create(model="talker", messages=HELLO).choices


def test_one_prompt_that_fails_fails_the_answer(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="talker", prompt=["short", "long" * CONTEXT])


def test_a_client_that_leaves_cancels(http: httpx.Client, served: Served) -> None:
    served.plane.script.endless = True
    body = {"model": "talker", "messages": HELLO, "stream": True}
    with http.stream("POST", "/chat/completions", json=body, timeout=PATIENCE_S) as response:
        chunks = response.iter_raw()  # httpx closes the connection when this iterator is dropped
        next(chunks)
        assert not served.plane.cancelled.is_set()
    assert served.plane.cancelled.wait(PATIENCE_S)


def test_a_client_that_does_not_read_is_waited_for(served: Served) -> None:
    served.plane.script.endless = True
    body = json.dumps({"model": "talker", "messages": HELLO, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert served.plane.paused.wait(PATIENCE_S)
        before = served.plane.stepped
        connection.settimeout(PATIENCE_S)
        while served.plane.stepped == before:
            assert connection.recv(1 << 16)
    assert served.plane.cancelled.wait(PATIENCE_S)


def test_a_server_that_ends_says_so_in_the_stream(served: Served) -> None:
    served.plane.script.holds = True
    url = f"{served.url}/chat/completions"

    async def cancel() -> None:
        for connection in tuple(served.listener._connections):
            connection.cancel()

    with httpx.stream("POST", url, json={"model": "talker", "messages": HELLO, "stream": True}) as response:
        lines = response.iter_lines()
        next(lines)
        asyncio.run_coroutine_threadsafe(cancel(), served.loop).result(PATIENCE_S)
        events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    assert events[-1]["error"]["message"] == "the server is shutting down"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "unknown_url"),
        ("GET", "/chat/completions", 405, "method_not_supported"),
        ("POST", "/models", 405, "method_not_supported"),
    ],
)
def test_what_is_not_there(http: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    answer = http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_an_unknown_path_names_those_that_there_are(http: httpx.Client) -> None:
    message = http.post("/chat/completion").json()["error"]["message"]
    assert message.startswith("Unknown request URL: POST /v1/chat/completion. There are /v1/")
    assert "/v1/chat/completions, /v1/completions, /v1/embeddings" in message


@pytest.mark.parametrize("path", ["/chat/completions", "/completions", "/embeddings", "/responses", "/models"])
def test_a_path_without_its_prefix_says_where_the_api_is(served: Served, path: str) -> None:
    answer = httpx.post(served.url.removesuffix("/v1") + path, json={})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "unknown_url")
    assert "OpenAI's API is under /v1: set base_url to http://HOST:PORT/v1" in error["message"]


def test_a_body_that_is_too_long(http: httpx.Client) -> None:
    answer = http.post("/chat/completions", content=b"x" * (LIMIT + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_a_body_that_is_packed(http: httpx.Client) -> None:
    answer = http.post("/chat/completions", content=b"x", headers={"content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_encoding")


def test_json_that_breaks_off(http: httpx.Client) -> None:
    answer = http.post("/chat/completions", content=b'{"model": "talker", "mess')
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


def test_health(http: httpx.Client, served: Served) -> None:
    assert http.get("/health").status_code == 200
    served.plane.is_ready = False
    answer = http.get("/health")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "not_ready"
    assert answer.headers["retry-after"] == "1"


def test_a_failure_in_the_front_end_is_an_error_of_the_server(
    http: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(served.plane, "submit", broken)
    answer = http.post("/chat/completions", json={"model": "talker", "messages": HELLO})
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"


def test_a_refusal_of_the_model_has_its_status_also_in_a_stream(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.refusal = invalid("the chat template of model 'talker' refuses the messages")
    with pytest.raises(openai.BadRequestError, match="chat template"):
        client.chat.completions.create(model="talker", messages=HELLO, stream=True)
    served.plane.script.refusal = unavailable("the engine is asleep")
    with pytest.raises(openai.InternalServerError, match="asleep"):
        client.chat.completions.create(model="talker", messages=HELLO, stream=True)
