"""Every parameter of the official client's methods has an effect, is refused by name, or is said to have no effect."""

import inspect
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.runtime.frontends.openai.conftest import Served
from tests.runtime.frontends.openai.surface.parameters import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RESPONSES,
    USER,
    Effect,
    NoEffect,
    Parameters,
    Refused,
)

PAGE = Path(__file__).parents[5] / "docs/how-to/openai.md"
OF_THE_CLIENT = {"extra_body", "extra_headers", "extra_query", "timeout"}
METHODS: dict[str, tuple[Parameters, dict[str, Any]]] = {
    "chat.completions": (CHAT, {"model": "talker", "messages": [USER]}),
    "completions": (COMPLETIONS, {"model": "talker", "prompt": "hello"}),
    "embeddings": (EMBEDDINGS, {"model": "pooling", "input": "hello"}),
    "responses": (RESPONSES, {"model": "talker", "input": "hello"}),
}
OF_THIS_ANSWER = {"id", "created", "created_at", "output"}


def cases(kind: type) -> list[Any]:
    """Return the methods and parameters of one kind."""
    return [
        pytest.param(method, name, id=f"{method}-{name}")
        for method, (parameters, _) in METHODS.items()
        for name, case in parameters.items()
        if isinstance(case, kind)
    ]


def method_of(client: openai.OpenAI, path: str) -> Any:
    """Return the client's method that creates something: that of `chat.completions`, say."""
    resource: Any = client
    for name in path.split("."):
        resource = getattr(resource, name)
    return resource.create


@pytest.fixture
def clients(served: Served, embedding_server: Served) -> Iterator[dict[str, openai.OpenAI]]:
    """Yield a client for each method."""
    embedding_server.plane.reset()
    with (
        openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as client,
        openai.OpenAI(base_url=embedding_server.url, api_key="none", max_retries=0) as embedder,
    ):
        yield {method: embedder if method == "embeddings" else client for method in METHODS}


def create(client: openai.OpenAI, method: str, **fields: Any) -> Any:
    """Return the answer to the required parameters and these; of a stream its events."""
    answer = method_of(client, method)(**{**METHODS[method][1], **fields})
    return list(answer) if fields.get("stream") else answer


def shows(case: Effect, answer: Any, served: Served) -> object:
    """Return whether an answer and the model's last request show an effect."""
    try:
        return case.shows(answer, served.plane.script.seen[-1] if served.plane.script.seen else None)
    except (AttributeError, KeyError, TypeError, IndexError):
        return False


@pytest.mark.parametrize("method", METHODS)
def test_all_parameters_of_the_client_are_listed(method: str) -> None:
    with openai.OpenAI(base_url="http://127.0.0.1", api_key="none") as client:
        declared = set(inspect.signature(method_of(client, method)).parameters)
    assert set(METHODS[method][0]) == declared - OF_THE_CLIENT


@pytest.mark.parametrize(("method", "name"), cases(Effect))
def test_a_parameter_has_its_effect(clients: dict[str, openai.OpenAI], served: Served, method: str, name: str) -> None:
    case = METHODS[method][0][name]
    assert isinstance(case, Effect)
    assert shows(case, create(clients[method], method, **{name: case.value}, **case.more), served)
    assert not shows(case, create(clients[method], method, **case.more), served)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("method", "name"), cases(Refused))
def test_a_parameter_is_refused_by_name(
    clients: dict[str, openai.OpenAI], served: Served, method: str, name: str, stream: bool
) -> None:
    case = METHODS[method][0][name]
    assert isinstance(case, Refused)
    with pytest.raises(openai.BadRequestError) as raised:
        create(clients[method], method, **{name: case.value}, stream=stream)
    error = raised.value
    assert (error.param, error.code, error.type) == (name, case.code, "invalid_request_error")
    assert f"'{name}'" in error.message
    assert served.plane.requests == []


@pytest.mark.parametrize(("method", "name"), cases(NoEffect))
def test_a_parameter_without_effect_is_documented(clients: dict[str, openai.OpenAI], method: str, name: str) -> None:
    case = METHODS[method][0][name]
    assert isinstance(case, NoEffect)
    answers = [create(clients[method], method, **fields) for fields in ({}, {name: case.value})]
    without, answer = [answer.model_dump(mode="json", exclude=OF_THIS_ANSWER) for answer in answers]
    assert answer == without
    (row,) = [line for line in PAGE.read_text().splitlines() if "without effect: nothing is stored" in line]
    assert any(fnmatchcase(name, pattern) for pattern in re.findall(r"`([^`]+)`", row))
