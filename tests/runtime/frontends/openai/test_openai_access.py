"""Who may use OpenAI's API: API keys, restrictions, and a port of its own."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import openai
import pytest
import uvloop
from tests.runtime.frontends.openai.engine import LanguagePlane

from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.http.openai.app import OpenAiOptions
from argosy_runtime.frontends.http.openai.keyguard import KeyGuard, read_keys
from argosy_runtime.frontends.restrictions import Api, Restriction
from argosy_runtime.protocol.openai.errors import ApiError

SECRET = Restriction("open-sesame", "please")
CHAT = {"model": "talker", "messages": [{"role": "user", "content": "hello"}]}


def line(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}\n"


@contextmanager
def listening(options: OpenAiOptions, alone: bool = False) -> Iterator[str]:
    """Yield the address of a server, which serves OpenAI's API alone or next to V2."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    plane = LanguagePlane()
    if alone:
        serving = http_frontend.serve_openai(plane, http_frontend.OpenAiListen("127.0.0.1", 0, options))
    else:
        both = http_frontend.HttpOptions(host="127.0.0.1", port=0, openai=options, restricted=options.restricted)
        serving = http_frontend.serve(plane, both)
    listener = asyncio.run_coroutine_threadsafe(serving, loop).result(10)
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        asyncio.run_coroutine_threadsafe(listener.stop(0.2), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(line("first") + "team:" + line("second"))
    return file


def test_only_clients_with_a_key_use_it(keys_file: Path) -> None:
    guard = KeyGuard(keys_file, read_keys(keys_file))
    with listening(OpenAiOptions(guard=guard)) as address:
        for key in ("first", "second"):
            with openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0) as client:
                assert client.models.list().data
                assert client.chat.completions.create(**CHAT).choices  # type: ignore[call-overload]
        with openai.OpenAI(base_url=f"{address}/v1", api_key="third", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError) as caught:
                client.models.list()
            assert caught.value.code == "invalid_api_key"
        answer = httpx.post(f"{address}/v1/chat/completions", json=CHAT)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert httpx.get(f"{address}/v1/health").status_code == 200


async def test_keys_change_without_a_restart(keys_file: Path) -> None:
    write, remove = keys_file.write_text, keys_file.unlink
    guard = KeyGuard(keys_file, read_keys(keys_file))
    with listening(OpenAiOptions(guard=guard)) as address:
        headers = {"authorization": "Bearer first"}
        async with httpx.AsyncClient(headers=headers) as client:
            assert (await client.get(f"{address}/v1/models")).status_code == 200
            write(line("new"))
            await guard.refresh()
            # The same head again, which the connection has cached with its handler.
            assert (await client.get(f"{address}/v1/models")).status_code == 401
            write("nonsense")
            await guard.refresh()
            remove()
            await guard.refresh()
            client.headers["authorization"] = "Bearer new"
            assert (await client.get(f"{address}/v1/models")).status_code == 200


async def test_a_file_without_keys_lets_no_client_in(keys_file: Path) -> None:
    guard = KeyGuard(keys_file, read_keys(keys_file))
    keys_file.write_text("# all of them are revoked\n")  # noqa: ASYNC240
    await guard.refresh()
    with pytest.raises(ApiError):
        guard.keys.check("Bearer first")
    keys_file.write_text(line("new"))  # noqa: ASYNC240
    await guard.refresh()
    guard.keys.check("Bearer new")


@pytest.mark.parametrize(
    ("group", "models", "chat"),
    [(Api.OPENAI, 403, 403), (Api.INFERENCE, 200, 403), (Api.MODEL_INDEX, 403, 200)],
)
def test_restricted_groups(group: Api, models: int, chat: int) -> None:
    with listening(OpenAiOptions(restricted={group: SECRET})) as address, httpx.Client(base_url=address) as client:
        assert client.get("/v1/models").status_code == models
        refused = client.post("/v1/chat/completions", json=CHAT)
        assert refused.status_code == chat
        if chat == 403:
            assert "open-sesame" in refused.json()["error"]["message"]
        client.headers["open-sesame"] = "please"
        assert client.get("/v1/models").status_code == 200
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200


def test_a_key_stands_in_for_the_header_of_inference(keys_file: Path) -> None:
    options = OpenAiOptions(restricted={Api.INFERENCE: SECRET}, guard=KeyGuard(keys_file, read_keys(keys_file)))
    with listening(options) as address, httpx.Client(base_url=address) as client:
        assert client.post("/v2/models/talker/infer", json={}).status_code == 403
        headers = {"authorization": "Bearer first"}
        assert client.post("/v1/chat/completions", json=CHAT, headers=headers).status_code == 200


def test_on_a_port_of_its_own_there_is_nothing_else() -> None:
    with listening(OpenAiOptions(), alone=True) as address, httpx.Client(base_url=address) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.get("/health").status_code == 200
        answer = client.get("/v2/health/ready")
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "unknown_url"
