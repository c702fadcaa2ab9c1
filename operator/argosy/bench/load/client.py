"""The HTTP client of one endpoint: streams are read as bytes arrive, and each read has its time."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from os import strerror
from time import perf_counter
from typing import Any, TypeVar

import aiohttp
import msgspec

from argosy.bench.answers import Answer
from argosy.bench.events import EventReader, Reply, error_text
from argosy.bench.work import PATHS, Api, count_body

_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_CONNECT_S = 10.0
T = TypeVar("T")


class EndpointError(Exception):
    """An endpoint does not answer as OpenAI's API does; the message names it."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to measure: a name for the results, the base URL, the model, and the API key, which may be empty."""

    name: str
    url: str
    model: str = ""
    key: str = ""


class Client:
    """Sends requests to one endpoint. A connection for each request in flight stays open for the next one."""

    def __init__(self, target: Target, session: aiohttp.ClientSession) -> None:
        self.target = target
        self._session = session

    async def send(self, api: Api, body: bytes, intended: float) -> Answer:
        """Return the answer to a streaming request; a failure is an answer with an error."""
        answer = Answer(intended, perf_counter())
        reader = EventReader(answer)
        try:
            async with self._session.post(self.target.url + PATHS[api], data=body) as response:
                if response.status != 200:
                    answer.error = f"HTTP {response.status}: {await _message(response)}"
                else:
                    async for data in response.content.iter_any():
                        reader.feed(data, perf_counter())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            answer.error = answer.error or _reason(error, self.target.url)
        reader.finish(perf_counter())
        return answer

    async def count(self, api: Api, prompt: str) -> int:
        """Return the tokens of a prompt, by the usage that the endpoint reports. Raises EndpointError."""
        body = count_body(api, self.target.model, prompt)
        reply = await self._read("POST", PATHS[api], body, Reply)
        if reply.usage is None:
            raise EndpointError(f"{self.target.name}: {PATHS[api]} reports no usage: no tokens can be counted")
        return reply.usage.prompt_tokens

    async def models(self) -> list[str]:
        """Return the names of the endpoint's models. Raises EndpointError."""
        reply = await self._read("GET", "/v1/models", b"", Models)
        return [model.id for model in reply.data]

    async def _read(self, method: str, path: str, body: bytes, kind: type[T]) -> T:
        where = f"{self.target.name}: {method} {self.target.url}{path}"
        try:
            async with self._session.request(method, self.target.url + path, data=body or None) as response:
                if response.status != 200:
                    raise EndpointError(f"{where}: HTTP {response.status}: {await _message(response)}")
                return msgspec.json.decode(await response.read(), type=kind)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise EndpointError(f"{where}: {_reason(error, self.target.url)}") from error
        except msgspec.MsgspecError as error:
            raise EndpointError(f"{where}: the answer is not as OpenAI's API has it: {error}") from error


class ListedModel(msgspec.Struct):
    """A model in the answer of /v1/models."""

    id: str


class Models(msgspec.Struct):
    """The answer of /v1/models."""

    data: list[ListedModel]


@asynccontextmanager
async def connected(target: Target, timeout_s: float) -> AsyncIterator[Client]:
    """Yield a client of an endpoint; a request may take `timeout_s`."""
    headers: Mapping[str, str] = _HEADERS | ({"Authorization": f"Bearer {target.key}"} if target.key else {})
    timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
        yield Client(target, session)


async def _message(response: aiohttp.ClientResponse) -> str:
    text = (await response.read()).decode(errors="replace")
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text.strip()
    return error_text(document)


def _reason(error: BaseException, url: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        why = strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        return f"cannot connect to {url}: is a server there? ({why})"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
