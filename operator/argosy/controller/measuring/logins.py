"""Logins for Prometheus, read from the Secrets that pools name."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from argosy.cluster.client.errors import ApiError, ForbiddenError, NotFoundError
from argosy.cluster.client.kinds import SECRET, Key, Kind
from argosy.signals.login import Login, login_of

AGAIN_S = 60.0
"""How long a Secret is cached, in seconds: the operator has no right to watch Secrets."""
FORGET_S = 600.0
"""After how many seconds without a use a login is forgotten."""
Get = Callable[[Kind, Key], Awaitable[dict[str, Any]]]
"""Returns one object. Raises ApiError."""


class Logins:
    """Each Secret's login, by namespace and name."""

    def __init__(self, get: Get, clock: Callable[[], float] = time.monotonic) -> None:
        self._get, self._clock = get, clock
        self._logins: dict[Key, tuple[float, Login]] = {}
        self._used: dict[Key, float] = {}

    async def of(self, namespace: str, name: str | None) -> Login:
        """Return the login from the Secret; an empty login without a name. A faulty Secret is the login's error."""
        if name is None:
            return Login()
        key, now = (namespace, name), self._clock()
        self._used[key] = now
        read_at, login = self._logins.get(key, (-AGAIN_S, Login()))
        if now - read_at >= AGAIN_S:
            login = await self._read(key, login)
            # What is wrong may be put right at any moment.
            self._logins[key] = (-AGAIN_S if login.error else now, login)
            self._forget(now - FORGET_S)
        return login

    def _forget(self, before: float) -> None:
        """Forget logins that were last used before then."""
        for key in [key for key, used_at in self._used.items() if used_at < before]:
            del self._used[key]
            self._logins.pop(key, None)

    def __len__(self) -> int:
        """Return the number of cached logins."""
        return len(self._logins)

    async def _read(self, key: Key, before: Login) -> Login:
        named = "/".join(key)
        try:
            return login_of(named, await self._get(SECRET, key))
        except NotFoundError:
            return Login(error=f"Secret {named}, which spec.monitoring.prometheus.secretName names, is not there")
        except ForbiddenError:
            way_out = f"add {key[1]!r} to the chart's value rbac.secretNames"
            return Login(error=f"Secret {named} may not be read by the operator; {way_out}")
        except ApiError as error:
            if before != Login():
                return before
            return Login(error=f"Secret {named} cannot be read: {error}")
