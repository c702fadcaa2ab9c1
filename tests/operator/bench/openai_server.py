"""A fake endpoint of OpenAI's API on loopback: answers of the requested length, at a pace that the test sets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


def words(text: str) -> int:
    return len(text.split())


@dataclass
class Endpoint:
    """`count` is its tokenizer, `overhead` what it adds to a prompt, `step_s` the pause before each token.

    `flaw` changes one thing: "status", "cut" (a stream that breaks off), "no usage", "short", "error" (in the middle).
    """

    model: str = "llama"
    count: Callable[[str], int] = words
    overhead: int = 1
    step_s: float = 0.0
    flaw: str = ""
    flawed_after: int = 0
    key: str = ""
    requests: list[dict] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "Incorrect API key provided"}}, status=401)
        body = await request.json()
        self.requests.append(body)
        chat = "messages" in body
        prompt = self.overhead + self.count(body["messages"][0]["content"] if chat else body["prompt"])
        if not body.get("stream"):
            return web.json_response({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 1}})
        streamed = sum(1 for sent in self.requests if sent.get("stream"))
        flaw = self.flaw if streamed > self.flawed_after else ""
        if flaw == "status":
            return web.json_response({"error": {"message": "the engine is asleep"}}, status=503)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._stream(request, body, prompt, flaw, chat)
        finally:
            self.in_flight -= 1

    async def _stream(self, request, body, prompt, flaw, chat) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        tokens = body["max_tokens"] - (flaw == "short")
        for number in range(tokens):
            await asyncio.sleep(self.step_s)
            if flaw and number == tokens // 2:
                if flaw == "cut":
                    return response
                if flaw == "error":
                    await response.write(b'data: {"error": {"message": "the engine ended"}}\n\n')
                    return response
            choice = {"delta": {"content": "x"}} if chat else {"text": "x"}
            await response.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        if flaw != "no usage":
            usage = {"prompt_tokens": prompt, "completion_tokens": tokens}
            await response.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def serving(endpoint: Endpoint) -> AsyncIterator[Endpoint]:
    """Yield the endpoint with its URL, on a free port of loopback."""
    app = web.Application()
    app.router.add_get("/v1/models", endpoint.models)
    app.router.add_post("/v1/completions", endpoint.complete)
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    try:
        yield endpoint
    finally:
        await runner.cleanup()
