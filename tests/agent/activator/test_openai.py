"""OpenAI's API by the activator: the model is named in the body, and errors have OpenAI's form."""

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest
from tests.agent.activator.standing import Standing, standing

from argosy_agent.activator.http.bodies import BodyBudget
from argosy_agent.activator.http.messages import Head
from argosy_agent.activator.http.openai import BodyError, body_length, model_of, parse_openai
from argosy_agent.activator.request_kind import RequestKind
from argosy_agent.contract.activation import Endpoint

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello " * 30_000}], "model": "identity"}
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "identity",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


class ChatServer:
    """A server that answers chats; `bodies` are those it got."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = [
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        ]
        self.bodies.append(json.loads(await reader.readexactly(length)))
        body = json.dumps(ANSWER).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()
        writer.close()


def client(at: Standing) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"http://{at.http}/v1", api_key="none", max_retries=0)


async def test_a_chat_waits_until_a_server_has_its_model() -> None:
    server = ChatServer()
    listening = await asyncio.start_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with standing() as at, client(at) as asking, listening:
        at.says()
        chat = asyncio.create_task(asking.chat.completions.create(**CHAT))
        await at.channel.until(**{"the-identity": 1})
        at.says(Endpoint("127.0.0.1", port, 1))
        answer = await chat
        await at.channel.until()
    assert answer.choices[0].message.content == "hi"
    assert server.bodies == [CHAT]


async def test_the_models_that_are_reached_here_are_listed() -> None:
    async with standing() as at, client(at) as asking:
        at.says()
        assert [model.id for model in (await asking.models.list()).data] == ["identity", "repeat"]
        assert (await asking.models.retrieve("repeat")).id == "repeat"
        with pytest.raises(openai.NotFoundError) as caught:
            await asking.models.retrieve("nobody")
        assert caught.value.code == "model_not_found"


async def test_refusals_are_error_objects() -> None:
    async with standing("--max-held-requests=1") as at, client(at) as asking:
        at.says()
        with pytest.raises(openai.NotFoundError) as unknown:
            await asking.chat.completions.create(**{**CHAT, "model": "nobody"})
        assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
        waiting = asyncio.create_task(asking.chat.completions.create(**CHAT))
        await at.channel.until(**{"the-identity": 1})
        with pytest.raises(openai.RateLimitError) as full:
            await asking.chat.completions.create(**CHAT)
        assert full.value.code == "rate_limit_exceeded"
        waiting.cancel()
        at.says(timeout_s=0.01)
        with pytest.raises(openai.InternalServerError) as overdue:
            await asking.chat.completions.create(**CHAT)
        assert overdue.value.code == "service_unavailable"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/completions", b'{"model": 3}', 400),
        ("/v1/embeddings", b"\xff", 400),
        ("/v1/files", b"{}", 503),
    ],
)
async def test_bodies_without_a_model(path: str, body: bytes, status: int) -> None:
    async with standing() as at, httpx.AsyncClient() as http:
        at.says()
        answer = await http.post(f"http://{at.http}{path}", content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["type"]


async def test_health_is_that_of_the_activator() -> None:
    async with standing() as at, httpx.AsyncClient() as http:
        assert (await http.get(f"http://{at.http}/v1/health")).status_code == 503
        at.says()
        await at.channel.taken([0])
        assert (await http.get(f"http://{at.http}/v1/health")).status_code == 200


async def test_a_client_that_waits_to_send_its_body_is_invited() -> None:
    async with standing() as at:
        at.says()
        reader, writer = await asyncio.open_connection(*at.http.split(":"))
        body = json.dumps({"model": "nobody"}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404")
        writer.close()


async def test_a_body_without_a_length_is_not_read() -> None:
    async def pieces() -> Any:
        yield b"{}"

    async with standing() as at, httpx.AsyncClient() as http:
        at.says()
        answer = await http.post(f"http://{at.http}/v1/completions", content=pieces())
        assert answer.status_code == 411


@pytest.mark.parametrize("length", [str(1 << 30), "9" * 5000])
def test_bodies_that_are_too_long(length: str) -> None:
    with pytest.raises(BodyError) as caught:
        body_length(Head("POST / HTTP/1.1", (("Content-Length", length),)))
    assert caught.value.status == 413


def test_bodies_have_a_common_budget() -> None:
    budget = BodyBudget(10)
    with budget.reading(6), pytest.raises(BodyError), budget.reading(5):
        pass
    with budget.reading(10):
        pass


def test_paths() -> None:
    assert parse_openai("/v2/models/m/infer") is None
    chat = parse_openai("/v1/chat/completions")
    assert chat is not None
    assert (chat.kind, chat.names_model) == (RequestKind.QUEUE, True)
    unknown = parse_openai("/v1/messages")
    assert unknown is not None
    assert (unknown.kind, unknown.names_model) == (RequestKind.OTHER, False)  # no server has it: nothing is woken
    assert model_of(b'{"messages": [], "model": "m"}') == "m"
