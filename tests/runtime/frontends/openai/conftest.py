"""OpenAI's API in front of a data plane of fake language models, and the official client."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openai
import pytest
import uvloop
from tests.runtime.frontends.openai.embedders import EmbeddingPlane
from tests.runtime.frontends.openai.engine import LanguagePlane

from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.http.openai.app import OpenAiOptions
from argosy_runtime.frontends.http.wire.listener import HttpListener

LIMIT = 1 << 20


@dataclass
class Served:
    """A plane and the port on which its API is."""

    plane: LanguagePlane
    port: int
    listener: HttpListener
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def serving(plane: LanguagePlane) -> Iterator[Served]:
    """Serve the API in front of a plane, by a thread."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    options = http_frontend.HttpOptions(
        host="127.0.0.1", port=0, max_input_size=LIMIT, openai=OpenAiOptions(max_input_size=LIMIT)
    )
    listener = asyncio.run_coroutine_threadsafe(http_frontend.serve(plane, options), loop).result(10)
    try:
        yield Served(plane, listener.port, listener, loop)
    finally:
        asyncio.run_coroutine_threadsafe(listener.stop(0.2), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(scope="module")
def openai_server(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Yield the API in front of the module's `PLANE`, by default one of language models."""
    plane: type[LanguagePlane] = getattr(request.module, "PLANE", LanguagePlane)
    with serving(plane()) as served:
        yield served


@pytest.fixture(scope="session")
def embedding_server() -> Iterator[Served]:
    """Yield the API in front of models of embeddings."""
    with serving(EmbeddingPlane()) as served:
        yield served


@pytest.fixture
def served(openai_server: Served) -> Served:
    """Return the API, its plane as new."""
    openai_server.plane.reset()
    return openai_server


@pytest.fixture
def plane(served: Served) -> Any:
    """Return the plane, as new. Its type is the module's `PLANE`."""
    return served.plane


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as client:
        yield client
