"""The admission server: kopf answers the API server's reviews over TLS, in every replica of the operator."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf

from argosy.cluster.client.connection import Connection
from argosy_common.backoff import backoff_s

from .resources import registry

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""The files of a Secret of the type kubernetes.io/tls."""
RETRY_FIRST_S, RETRY_MOST_S = 1.0, 30.0
WELL_S = 60.0
"""After this long without an error the next one counts as the first."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Admission:
    """The admission server's address, and the folder of its certificate and key.

    The files are read again every minute, so a renewed certificate needs no restart.
    """

    host: str
    port: int
    certificates: Path

    async def run(self, connection: Connection, started: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Answer admission reviews until cancelled. kopf is restarted after an error.

        `started` is called whenever kopf has started, and so has installed its signal handlers. `failed` is called with
        the message of an error, and with an empty text once reviews are answered.
        """
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            error = await self._once(connection, started, lambda: failed(""))
            failures = 1 if loop.time() - began > WELL_S else failures + 1
            pause = backoff_s(failures, RETRY_FIRST_S, RETRY_MOST_S) * random.uniform(0.8, 1.2)
            message = f"reviews are not answered: {error or 'kopf ended'}"
            log.warning("%s; tried again in %.1f s", message, pause)
            failed(message)
            await asyncio.sleep(pause)

    async def _once(
        self, connection: Connection, started: Callable[[], None], listening: Callable[[], None]
    ) -> BaseException | None:
        """Run kopf, and return what ended it.

        `kopf.operator` is not used: in the end it cancels every task of the process that is younger than itself.
        """
        tasks = await kopf.spawn_tasks(
            registry=registry(connection.access),
            settings=self._settings(listening),
            standalone=True,
            clusterwide=True,
        )
        started()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        errors = (task.exception() for task in done if not task.cancelled())
        return next((error for error in errors if error is not None), None)

    def _settings(self, listening: Callable[[], None]) -> kopf.OperatorSettings:
        """Return kopf's settings: it posts no Events, watches nothing, and changes no webhook configuration."""
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True  # the kinds are there before it starts
        settings.process.ultimate_exiting_timeout = None  # it would end the process, in which kopf may run again
        settings.admission.server = _Server(
            listening,
            addr=self.host,
            port=self.port,
            certfile=str(self.certificates / CERTIFICATE),
            pkeyfile=str(self.certificates / KEY),
        )
        return settings


class _Server(kopf.WebhookServer):
    """kopf's server, which says when it listens."""

    def __init__(self, listening: Callable[[], None], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._listening = listening

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:
        async def review(request: Any, **context: Any) -> Any:
            return await fn(_without_uids(request), **context)

        async for config in super().__call__(review):
            self._listening()
            yield config


def _without_uids(review: Any) -> Any:
    """Return a review whose objects have no uid: kopf keeps a memo for each uid, until it sees that object's end."""
    request = dict(review.get("request") or {})
    for name in ("object", "oldObject"):
        if request.get(name):
            metadata = {key: value for key, value in request[name].get("metadata", {}).items() if key != "uid"}
            request[name] = {**request[name], "metadata": metadata}
    return {**review, "request": request}
