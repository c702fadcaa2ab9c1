"""kopf's handlers for the three kinds: each validates what it saw, and says so.

They are coroutines, though they wait for nothing: kopf gives plain functions to threads. Only low-level ones are used:
kopf then writes nothing to the resources, no annotation and no finalizer.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf

from argosy.api import GROUP, VERSION
from argosy.api.values.identity import Identity
from argosy.cluster.client.access import Access
from argosy.cluster.client.kinds import RESOURCES
from argosy.controller.resources.feed import Listener
from argosy.controller.resources.parsed_body import parsed_body

TOKEN_LIFE = timedelta(minutes=10)
"""How long kopf shows one token: a Pod's is replaced within the hour, and stays good for a while after."""
LogIn = Callable[[], Awaitable[Access]]


def registry(listener: Listener, access: LogIn) -> kopf.OperatorRegistry:
    """kopf's handlers, which report to `listener`."""
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(_login(access))
    for kind in RESOURCES.values():
        kopf.on.event(GROUP, VERSION, kind.plural, registry=handlers, id=kind.plural)(_handler(listener))
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


def _handler(listener: Listener) -> Callable[..., Awaitable[None]]:
    async def changed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002  # kopf passes by name
        if type == "DELETED":
            metadata = body["metadata"]
            listener.ended(Identity.of(body["kind"], metadata["namespace"], metadata["name"]), metadata["uid"])
        else:
            listener.seen(parsed_body(dict(body)))

    return changed


def _login(access: LogIn) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    async def login(**_kwargs: Any) -> kopf.ConnectionInfo:
        """Return the operator's own credentials; kopf asks again when they have ended."""
        shown = await access()
        scheme, _, token = (shown.authorization or "").partition(" ")
        return kopf.ConnectionInfo(
            server=shown.server,
            ca_path=shown.authority_file,
            certificate_path=shown.certificate_file,
            private_key_path=shown.key_file,
            insecure=shown.insecure,
            proxy_url=shown.proxy,
            scheme=scheme or None,
            token=token or None,
            expiration=datetime.now(UTC) + TOKEN_LIFE,
        )

    return login
