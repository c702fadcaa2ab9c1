"""How a case with shared memory is answered: every step's answer, and what the memory holds afterwards."""

from pathlib import Path
from typing import Any

from tests.differential.cases.shared_memory import CASES, CONTENT, NAME, PAGE, UNREGISTER, Rpc, SharedCase, Step
from tests.differential.grpc_cases import GrpcCase
from tests.differential.grpc_cases import answer as grpc_answer
from tests.differential.http_calls import send
from tests.differential.normalise import normalised
from tests.peers.server import Server

__all__ = ["CASES", "answers"]

_OBJECT = Path("/dev/shm") / NAME
_SHOWN = 640
"""Bytes at the beginning of each page that are compared."""


def answers(server: Server, case: SharedCase) -> dict[str, Any]:
    """Return `{"steps", "pages"}`: the normalised answers, and each page's beginning where it changed."""
    _OBJECT.write_bytes(CONTENT)
    try:
        steps = [_answer(server, step) for step in case.steps]
        pages = [_OBJECT.read_bytes()[at : at + _SHOWN] for at in (0, PAGE)]
    finally:
        send(server.http, UNREGISTER)
        _OBJECT.unlink()
    changed = [
        page.hex() if page != CONTENT[at : at + _SHOWN] else "" for at, page in zip((0, PAGE), pages, strict=True)
    ]
    return {"steps": steps, "pages": changed}


def _answer(server: Server, step: Step) -> Any:
    if isinstance(step, Rpc):
        return grpc_answer(server.grpc, GrpcCase("", step.method, list(step.requests)))
    return normalised(send(server.http, step))
