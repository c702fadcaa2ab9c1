"""Requests to a server with a language model `llm`, as clients of Triton's vLLM backend send them, and its engine."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
from tests.peers.server import Server

CHAT: Any = [{"role": "user", "content": "Hello"}]
GREEDY = {"temperature": 0, "max_tokens": 24, "ignore_eos": True}


def post(server: Server, path: str, body: object) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=300)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        connection.close()


def generate(server: Server, sampling: dict[str, Any] = GREEDY, **inputs: Any) -> dict[str, Any]:
    """Return the outputs of one request."""
    body = {"sampling_parameters": json.dumps(sampling), "exclude_input_in_output": True, **inputs}
    status, answer = post(server, "/v2/models/llm/generate", body)
    assert status == 200, answer
    return answer


@contextmanager
def stream(
    server: Server, text: str, sampling: dict[str, Any], receive_buffer: int = 0, **inputs: Any
) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the events of a stream; the connection is closed at the end of the block."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=300)
    if receive_buffer:
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.sock.connect(("127.0.0.1", server.ports.http))
    body = {"text_input": text, "stream": True, "sampling_parameters": json.dumps(sampling), **inputs}
    connection.request("POST", "/v2/models/llm/generate_stream", json.dumps(body))
    response = connection.getresponse()
    assert response.status == 200, response.read()
    try:
        yield (json.loads(line[6:]) for line in response if line.startswith(b"data: "))
    finally:
        response.close()
        connection.close()


def chat_twice(client: openai.OpenAI, model: str) -> tuple[str, list[str]]:
    """Return the answer to a chat, and the pieces of the same answer as a stream; both report the same usage."""
    options: dict[str, Any] = {"model": model, "messages": CHAT, "temperature": 0, "max_tokens": 24}
    answer = client.chat.completions.create(**options)
    *chunks, last = client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
    assert last.usage == answer.usage
    assert answer.usage.prompt_tokens == len("user: Hello\nassistant:")
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    return answer.choices[0].message.content, list(filter(None, pieces))


def gauge(server: Server, name: str, label: str = 'model_name="llm"') -> float:
    """Return a metric of the model, or of the one series that has another label."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports.metrics, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    (line,) = [line for line in lines if line.startswith(name + "{") and label in line]
    return float(line.rpartition(" ")[2])


def engine_processes(server: int) -> list[int]:
    """Return the ids of vLLM's engines below a server."""
    parents = {int(path.name): int(stat(path)[1]) for path in Path("/proc").iterdir() if path.name.isdigit()}
    below = {server}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(process for process in below if "EngineCore" in Path(f"/proc/{process}/cmdline").read_text())


def stat(process: Path) -> list[str]:
    """Return the state of a process and its parent; those of the first one for a process that has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["Z", "0"]
