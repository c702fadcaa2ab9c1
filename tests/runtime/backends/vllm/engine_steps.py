"""What tests of an instance ask of it, and steps of the engine's stand-in."""

import json
import threading
from typing import Any

from argosy_runtime.errors import ServingError
from argosy_runtime.language import ResponseReader


def sampling(**values: Any) -> str:
    """Return parameters as JSON."""
    return json.dumps(values)


def texts(responses: list[Any]) -> list[str]:
    """Return the texts of the responses' choices."""
    reader = ResponseReader()
    return [delta.text for response in responses for delta in reader.read(response)]


def only_error(responder: Any, index: int = 0) -> ServingError:
    """Return the error of a request, once it is answered."""
    responder.wait_for_final(index)
    (response,) = responder.of(index)
    assert response.error is not None
    return response.error


def step(llm: Any, count: int = 1) -> None:
    """Let each waiting request of the engine make as many steps together."""
    for _ in range(count):
        llm.loop.call_soon_threadsafe(llm.steps.release)


def settled(llm: Any) -> None:
    """Wait until the engine's loop has done what it can."""
    done = threading.Event()
    rounds = iter(range(20))

    def turn() -> None:
        if next(rounds, None) is None:
            done.set()
        else:
            llm.loop.call_soon(turn)

    llm.loop.call_soon_threadsafe(turn)
    assert done.wait(30)
