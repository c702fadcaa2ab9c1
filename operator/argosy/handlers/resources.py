"""kopf's part: it watches the three kinds, and each handler says what it saw, and no more.

The handlers are coroutines, though they wait for nothing: kopf gives plain functions to threads. Only low-level ones
are used: kopf then writes nothing to the resources, no annotation and no finalizer. It does not say what was deleted
while its watch was broken; `cluster.living` does.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf

from argosy.api import GROUP, VERSION
from argosy.cluster.connection import Connection
from argosy.cluster.credentials import Credentials
from argosy.controller.feed import Listener

TOKEN_LIFE = timedelta(minutes=10)
"""How long kopf shows one token: a Pod's is replaced within the hour, and stays good for a while after."""
PLURALS = ("inferencemodels", "ensembles", "servingpools")
RETRY_FIRST_S, RETRY_MOST_S = 1.0, 30.0
WELL_S = 60.0
"""After how long without an error the next one counts as the first."""

log = logging.getLogger(__name__)


def registry(listener: Listener, credentials: Credentials) -> kopf.OperatorRegistry:
    """kopf's handlers, which report to `listener`."""
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(_login(credentials))
    for plural in PLURALS:
        kopf.on.event(GROUP, VERSION, plural, registry=handlers, id=plural)(_handler(listener))
    return handlers


def settings() -> kopf.OperatorSettings:
    """kopf's settings: it posts no Events, keeps no task for a resource that is quiet, and ends when it is told to."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.process.ultimate_exiting_timeout = None  # it would end the process, in which kopf may run again by then
    chosen.queueing.idle_timeout = 1.0
    chosen.queueing.exit_timeout = 0.1
    chosen.watching.server_timeout = 600
    chosen.watching.connect_timeout = 10
    return chosen


async def run(
    listener: Listener, connection: Connection, namespaces: Collection[str], spawned: Callable[[], None]
) -> None:
    """Watch until cancelled; in these namespaces, or in all where there are none.

    An error that ends kopf is logged, and kopf runs again. `spawned` is called whenever it has begun: it has taken the
    signals of the process by then.
    """
    loop, pause = asyncio.get_running_loop(), RETRY_FIRST_S
    while True:
        began = loop.time()
        error = await _once(listener, connection.credentials, namespaces, spawned)
        pause = RETRY_FIRST_S if loop.time() - began > WELL_S else pause
        log.warning("kopf ended: %s; it runs again in %.1f s", error, pause)
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        pause = min(pause * 2, RETRY_MOST_S)


async def _once(
    listener: Listener, credentials: Credentials, namespaces: Collection[str], spawned: Callable[[], None]
) -> BaseException | None:
    """Run kopf. What ended it.

    Not by `kopf.operator`, which in the end cancels every task of the process that is younger than itself.
    """
    tasks = await kopf.spawn_tasks(
        registry=registry(listener, credentials),
        settings=settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
    )
    spawned()
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    errors = (task.exception() for task in done if not task.cancelled())
    return next((error for error in errors if error is not None), None)


def _handler(listener: Listener) -> Callable[..., Awaitable[None]]:
    async def changed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002  # kopf passes by name
        if type == "DELETED":
            listener.gone(dict(body))
        else:
            listener.seen(dict(body))

    return changed


def _login(credentials: Credentials) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    async def login(**_: Any) -> kopf.ConnectionInfo:
        """The operator's own credentials; kopf asks again when they have ended."""
        shown = await credentials.headers()
        scheme, token = (*shown.get("Authorization", "").split(" ", 1), "", "")[:2]
        return kopf.ConnectionInfo(
            server=credentials.server,
            ca_path=credentials.authority_file or None,
            certificate_path=credentials.certificate_file or None,
            private_key_path=credentials.key_file or None,
            insecure=credentials.insecure,
            proxy_url=credentials.proxy,
            scheme=scheme or None,
            token=token or None,
            expiration=datetime.now(UTC) + TOKEN_LIFE,
        )

    return login
