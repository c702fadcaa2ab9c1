"""Takes the Lease, keeps it, gives it up; `lease` has the rules.

The kubernetes package has one too (`aio.leaderelection`), which does less: it never gives the Lease back, so that the
next replica waits out its whole duration; it polls where this one watches; and its renewals wait with other requests.
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

    `duration_s`: how long others wait for a holder that is silent. `renew_s`: how often the holder writes, and how
    often one that waits asks where it cannot watch. A holder gives up when two thirds of the duration passed without
    success. The defaults are those of Kubernetes' own components: 15, 10 and 2 seconds.
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
        self.held = False

    async def acquire(self) -> None:
        """Until this replica leads. What goes wrong meanwhile is logged, and tried again."""
        told = ""
        while not self.held:
            try:
                await self._look()
                if not await self._take():
                    await self._wait()
            except ApiError as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("the lease %s/%s cannot be had: %s", self._namespace, self._name, told)
                await asyncio.sleep(self._renew_s * random.uniform(0.8, 1.2))

    async def hold(self) -> None:
        """Renew the Lease until it is lost; then return."""
        while self.held:
            await asyncio.sleep(self._renew_s)
            await self._renew()

    async def release(self) -> None:
        """Give the Lease up, if this replica holds it, so that another takes over at once."""
        if not self.held or self._observed is None:
            return
        self.held = False
        try:
            await self._write(lease.release(self._observed.record, datetime.now(UTC)), self._deadline_s)
        except ApiError as error:
            log.warning("the lease %s/%s could not be given up: %s", self._namespace, self._name, error)

    async def _look(self) -> None:
        try:
            self._saw(await self._connection.get(LEASE, (self._namespace, self._name), urgent=True))
        except NotFoundError:
            self._observed = None

    def _saw(self, body: Mapping[str, Any]) -> None:
        self._observed = lease.seen(self._observed, lease.record_of(body), _now())

    async def _take(self) -> bool:
        """Take the Lease if it is free. Whether this replica leads now."""
        former = self._observed
        if former is not None and not former.is_free(self._identity, _now()):
            return False
        began = _now()
        try:
            await self._write(self._claim(former.record if former else None), self._deadline_s)
        except ConflictError:
            return False  # another was faster
        self._renewed, self.held = began, True
        return True

    async def _wait(self) -> None:
        """Until the Lease may be free: it changes hands, or its holder is silent for too long."""
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
                    self._saw(event["object"])
                    if self._observed.is_free(self._identity, _now()):
                        return
                    limit.reschedule(self._observed.expires)
        except TimeoutError:
            return

    async def _renew(self) -> None:
        """Write the Lease anew, or find that it is lost."""
        began, left = _now(), self._left()
        try:
            if self._observed is None or left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left):
                await self._write(self._claim(self._observed.record), left)
            self._renewed = began
        except ConflictError:
            await self._dispute()
        except (ApiError, TimeoutError) as error:
            self._unsure(error)

    async def _dispute(self) -> None:
        """Somebody wrote the Lease: another holder, or only its labels."""
        try:
            async with asyncio.timeout(max(self._left(), 0)):
                await self._look()
        except (ApiError, TimeoutError) as error:
            self._unsure(error)
            return
        if self._observed is not None and self._observed.record.holder != self._identity:
            self.held = False

    def _unsure(self, error: Exception) -> None:
        """Whether the Lease is held is not known; it counts as lost before another may take it."""
        log.warning("the lease %s/%s is not renewed: %s", self._namespace, self._name, error or "no answer")
        if self._left() <= self._renew_s:
            self.held = False

    def _left(self) -> float:
        """Seconds until this replica has to give up."""
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
        self._saw(answer)


def _now() -> float:
    """Seconds of the event loop's clock."""
    return asyncio.get_running_loop().time()
