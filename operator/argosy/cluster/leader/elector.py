"""The elector: acquires, renews and releases the Lease by the rules in `lease`.

The kubernetes package's `aio.leaderelection` never releases the Lease, so that the next replica waits for its full
duration; it polls instead of watching; and its renewals queue behind other requests.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, ConflictError, NotFoundError
from argosy.cluster.client.kinds import LEASE

from . import lease
from .lease import ObservedRecord, Record

log = logging.getLogger(__name__)

MANAGER = "argosy-leader"


class Elector:
    """One replica's part in the election on one Lease.

    `duration_s`: the lease duration, after which others may take over from a silent holder. `renew_s`: the interval of
    renewals, and the retry period of waiting replicas that cannot watch. The renew deadline of a holder is two thirds
    of the duration. The defaults are those of Kubernetes' own components: 15, 10 and 2 seconds.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        duration_s: int = 15,
        renew_s: float = 2.0,
    ) -> None:
        self._connection, self._namespace, self._name = connection, namespace, name
        self._identity, self._duration_s, self._renew_s = identity, duration_s, renew_s
        self._deadline_s = duration_s * 2 / 3
        self._observed: ObservedRecord | None = None
        self._renewed = 0.0
        self.is_leader = False

    async def acquire(self) -> None:
        """Wait until this replica leads. Errors are logged and retried."""
        logged = ""
        while not self.is_leader:
            try:
                await self._read()
                if not await self._take():
                    await self._wait()
            except ApiError as error:
                if str(error) != logged:
                    logged = str(error)
                    log.warning("the lease %s/%s cannot be had: %s", self._namespace, self._name, logged)
                await asyncio.sleep(self._renew_s * random.uniform(0.8, 1.2))

    async def renew(self) -> None:
        """Renew the Lease until it is lost."""
        while self.is_leader:
            await asyncio.sleep(self._renew_s)
            await self._try_renew()

    async def release(self) -> None:
        """Release the Lease, if this replica holds it, so that another one takes over at once."""
        if not self.is_leader or self._observed is None:
            return
        self.is_leader = False
        try:
            await self._write(lease.release(self._observed.record, datetime.now(UTC)), self._deadline_s)
        except ApiError as error:
            log.warning("the lease %s/%s could not be given up: %s", self._namespace, self._name, error)

    async def _read(self) -> None:
        try:
            self._observe(await self._connection.get(LEASE, (self._namespace, self._name), urgent=True))
        except NotFoundError:
            self._observed = None

    def _observe(self, body: Mapping[str, Any]) -> None:
        self._observed = lease.observed(self._observed, lease.record_of(body), _now())

    async def _take(self) -> bool:
        """Take the Lease if it is free. Return whether this replica leads now."""
        former = self._observed
        if former is not None and not former.is_free(self._identity, _now()):
            return False
        began = _now()
        try:
            await self._write(self._claim(former.record if former else None), self._deadline_s)
        except ConflictError:
            return False  # another was faster
        self._renewed, self.is_leader = began, True
        return True

    async def _wait(self) -> None:
        """Wait until the Lease may be free: its holder changes, or is silent for too long."""
        if self._observed is None:
            return
        params = {
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": self._observed.record.version,
            "timeoutSeconds": "300",
        }
        events = self._connection.watch(LEASE, self._namespace, params)
        try:
            async with aclosing(events), asyncio.timeout_at(self._observed.expires) as limit:
                async for event in events:
                    if event["type"] == "DELETED":
                        return
                    self._observe(event["object"])
                    if self._observed.is_free(self._identity, _now()):
                        return
                    limit.reschedule(self._observed.expires)
        except TimeoutError:
            return

    async def _try_renew(self) -> None:
        """Renew the Lease, or detect that it is lost."""
        began, left = _now(), self._left()
        try:
            if self._observed is None or left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left):
                await self._write(self._claim(self._observed.record), left)
            self._renewed = began
        except ConflictError:
            await self._resolve_conflict()
        except (ApiError, TimeoutError) as error:
            self._renewal_failed(error)

    async def _resolve_conflict(self) -> None:
        """Read the Lease after a conflict: another replica took it, or something changed only its metadata."""
        try:
            async with asyncio.timeout(max(self._left(), 0)):
                await self._read()
        except (ApiError, TimeoutError) as error:
            self._renewal_failed(error)
            return
        if self._observed is not None and self._observed.record.holder != self._identity:
            self.is_leader = False

    def _renewal_failed(self, error: Exception) -> None:
        """Log a failed renewal, and stop leading shortly before another replica may take over."""
        log.warning("the lease %s/%s is not renewed: %s", self._namespace, self._name, error or "no answer")
        if self._left() <= self._renew_s:
            self.is_leader = False

    def _left(self) -> float:
        """Return the seconds until the renew deadline."""
        return self._renewed + self._deadline_s - _now()

    def _claim(self, former: Record | None) -> dict[str, Any]:
        return lease.claim(former, self._identity, self._duration_s, datetime.now(UTC))

    async def _write(self, spec: Mapping[str, Any], timeout_s: float) -> None:
        metadata = {"namespace": self._namespace, "name": self._name}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}
        if self._observed is None:
            answer = await self._connection.create(LEASE, body, manager=MANAGER)
        else:
            body["metadata"] = {**metadata, "resourceVersion": self._observed.record.version}
            answer = await self._connection.update(LEASE, body, manager=MANAGER, timeout_s=timeout_s, urgent=True)
        self._observe(answer)


def _now() -> float:
    """Return the event loop's time in seconds."""
    return asyncio.get_running_loop().time()
