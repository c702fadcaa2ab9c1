"""The Secrets that Prometheus is asked with, read one by one where a pool names one."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from argosy.cluster.client.errors import ApiError, ForbiddenError, NotFoundError
from argosy.cluster.client.kinds import SECRET, Key, Kind
from argosy.signals.login import Login, login_of

AGAIN_S = 60.0
"""How long a Secret is taken to be as it was read: nobody may watch Secrets for it."""
FORGET_S = 600.0
"""How long a login that is not used is remembered."""


class Reader(Protocol):
    """What reads one object; `Connection` does."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        """Return one object. Raises ApiError."""


class Logins:
    """Each Secret's login, by namespace and name."""

    def __init__(self, reader: Reader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader, self._clock = reader, clock
        self._logins: dict[Key, tuple[float, Login]] = {}
        self._used: dict[Key, float] = {}

    async def of(self, namespace: str, name: str | None) -> Login:
        """Return what the Secret holds; without a name nothing is needed. What is wrong with it is the
        login's error.
        """
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
        """Forget what was last used before then."""
        for key in [key for key, used_at in self._used.items() if used_at < before]:
            del self._used[key]
            self._logins.pop(key, None)

    def __len__(self) -> int:
        """How many logins are remembered."""
        return len(self._logins)

    async def _read(self, key: Key, before: Login) -> Login:
        named = "/".join(key)
        try:
            return login_of(named, await self._reader.get(SECRET, key))
        except NotFoundError:
            return Login(error=f"Secret {named}, which spec.monitoring.prometheus.secretName names, is not there")
        except ForbiddenError:
            way_out = f"add {key[1]!r} to the chart's value rbac.secretNames"
            return Login(error=f"Secret {named} may not be read by the operator; {way_out}")
        except ApiError as error:
            if before != Login():
                return before
            return Login(error=f"Secret {named} cannot be read: {error}")
