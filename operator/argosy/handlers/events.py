"""kopf's part: it watches the three kinds, and each handler says what it saw, and no more.

The handlers are coroutines, though they wait for nothing: kopf gives plain functions to threads. Only low-level ones
are used: kopf then writes nothing to the resources, no annotation and no finalizer. The index makes it list every
kind before the first event is handed on, so that what is heard first is already whole.
"""

from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import kopf

from argosy.api import GROUP, VERSION
from argosy.cluster.credentials import Credentials

TOKEN_LIFE = timedelta(minutes=10)
"""How long kopf shows one token: a Pod's is replaced within the hour, and stays good for a while after."""
PLURALS = ("inferencemodels", "ensembles", "servingpools")


class Listener(Protocol):
    """What is told of resources; `process.Operator` is one."""

    def seen(self, body: dict[str, Any]) -> None:
        """The API server has this."""

    def gone(self, body: dict[str, Any]) -> None:
        """It no longer has this."""

    def whole(self) -> None:
        """Every kind was listed once."""


def registry(listener: Listener, credentials: Credentials) -> kopf.OperatorRegistry:
    """kopf's handlers, which report to `listener`."""
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(_login(credentials))
    for plural in PLURALS:
        kopf.index(GROUP, VERSION, plural, registry=handlers, id=f"seen-{plural}")(_indexer(listener))
        kopf.on.event(GROUP, VERSION, plural, registry=handlers, id=f"event-{plural}")(_handler(listener))
    return handlers


def settings() -> kopf.OperatorSettings:
    """kopf's settings: it posts no Events of its own, and keeps no task for a resource that is quiet."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.queueing.idle_timeout = 1.0
    chosen.watching.server_timeout = 600
    chosen.watching.connect_timeout = 10
    return chosen


async def run(listener: Listener, credentials: Credentials, namespaces: Collection[str]) -> None:
    """Watch until cancelled; in these namespaces, or in all where there are none."""
    await kopf.operator(
        registry=registry(listener, credentials),
        settings=settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
    )


def _indexer(listener: Listener) -> Callable[..., Awaitable[None]]:
    async def seen(body: kopf.Body, **_: Any) -> None:
        listener.seen(dict(body))

    return seen


def _handler(listener: Listener) -> Callable[..., Awaitable[None]]:
    async def changed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002  # kopf passes by name
        if type == "DELETED":
            listener.gone(dict(body))
        listener.whole()

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
