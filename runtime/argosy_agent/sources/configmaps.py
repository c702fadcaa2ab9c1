"""The desired repository and the state as ConfigMaps, over the API server."""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx

from argosy_agent.contract.documents import DESIRED_KEY, FIELD_MANAGER, STATE_KEY, ConfigMapName
from argosy_agent.publisher import PublishError
from argosy_common.backoff import Backoff

from .kubernetes_api import ApiServer, ApiServerError, collection, refusal

LOG = logging.getLogger(__name__)
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.5, 10.0
WATCH_S = (240, 360)
"""How long one watch lasts: by chance between these, so that a fleet's watches do not end together."""
GRACE_S = 15.0


class ConfigMapSource:
    """The text under `key` of one ConfigMap.

    A watch that names no version begins with the ConfigMap as it is, so there is nothing to list and nothing that can
    be too old; where there is none it waits. A ConfigMap that is deleted is no wish to serve nothing.
    """

    def __init__(self, api: ApiServer, name: ConfigMapName, key: str = DESIRED_KEY) -> None:
        self._api, self._name, self._key = api, name, key
        self._message = ""

    async def texts(self) -> AsyncIterator[str]:
        """Yield its text now, after every change, and whenever a watch begins again."""
        backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_MOST_S)
        while True:
            try:
                async for event in self._events():
                    backoff.reset()
                    self._log_once(logging.INFO, "is watched")
                    if (text := self._text(event)) is not None:
                        yield text
            except (ApiServerError, httpx.HTTPError) as error:
                self._log_once(logging.WARNING, f"cannot be watched, what was read last stands: {_words(error)}")
            await asyncio.sleep(backoff.next())

    async def _events(self) -> AsyncIterator[dict[str, Any]]:
        seconds = random.randint(*WATCH_S)
        query = {"watch": "1", "fieldSelector": f"metadata.name={self._name.name}", "timeoutSeconds": str(seconds)}
        async with (
            self._api.client(seconds + GRACE_S) as client,
            client.stream("GET", collection(self._name), params=query) as response,
        ):
            if not response.is_success:
                raise await refusal(response, "get, list, watch", self._name)
            async for line in _lines(response):
                yield _event(line)

    def _text(self, event: dict[str, Any]) -> str | None:
        if event["type"] == "ERROR":
            raise ApiServerError(str(event["object"].get("message", "the watch ended")))
        if event["type"] == "DELETED":
            self._log_once(logging.WARNING, "was deleted; what it said last stands")
            return None
        if event["type"] not in ("ADDED", "MODIFIED"):
            return None
        return str((event["object"].get("data") or {}).get(self._key, ""))

    def _log_once(self, level: int, words: str) -> None:
        """Log a message unless it was the last one: an outage is logged once, not with every try."""
        if words != self._message:
            self._message = words
            LOG.log(level, "ConfigMap %s %s", self._name, words)


class ConfigMapSink:
    """The text under `key` of one ConfigMap, which the operator makes: a merge patch creates nothing."""

    def __init__(self, api: ApiServer, name: ConfigMapName, key: str = STATE_KEY) -> None:
        self._api, self._name, self._key = api, name, key

    async def write(self, text: str) -> None:
        """Replace the text; an empty one goes with its key. Raises PublishError."""
        try:
            await self._write({"data": {self._key: text or None}})
        except (ApiServerError, httpx.HTTPError) as error:
            raise PublishError(_words(error)) from error

    async def _write(self, patch: dict[str, Any]) -> None:
        async with self._api.client() as client:
            response = await client.patch(
                f"{collection(self._name)}/{self._name.name}",
                params={"fieldManager": FIELD_MANAGER},
                headers={"Content-Type": "application/merge-patch+json"},
                content=json.dumps(patch),
            )
            if response.status_code == httpx.codes.NOT_FOUND:
                raise ApiServerError(f"ConfigMap {self._name} is not there yet: the operator makes it")
            if not response.is_success:
                raise await refusal(response, "get, patch, update", self._name)


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the lines of a response that end with a newline: other characters that end lines elsewhere may be in a
    text.
    """
    rest = bytearray()
    async for part in response.aiter_bytes():
        rest += part
        while (end := rest.find(b"\n")) >= 0:
            yield bytes(rest[:end])
            del rest[: end + 1]


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise ApiServerError(f"the watch sent something that is no event: {error}") from error
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict) or "type" not in event:
        raise ApiServerError("the watch sent something that is no event")
    return event


def _words(error: Exception) -> str:
    if isinstance(error, httpx.HTTPError):
        return f"the API server does not answer: {str(error) or type(error).__name__}"
    return str(error)
