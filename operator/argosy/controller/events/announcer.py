"""Kubernetes Events: what people should notice, on the resource that it is about."""

import hashlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from argosy.api import API_VERSION, ConditionStatus, ConditionType, Resource
from argosy.api.status import Status
from argosy.api.values.times import timestamp
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, NotFoundError
from argosy.cluster.client.kinds import EVENT
from argosy.controller.events.bottleneck_events import bottleneck_events
from argosy.controller.events.build_events import NORMAL, WARNING, build_events
from argosy.controller.events.cordon_events import cordon_events
from argosy.controller.events.scaling_events import scaling_events
from argosy_common.shortening import shortened

log = logging.getLogger(__name__)

COMPONENT = "argosy"
QUIET_S = 300.0
"""How long the same thing is not said again of the same resource; when it is, the Event counts how often it was so."""
KEPT = 2000
"""How many Events are remembered."""
_MESSAGE, _NAME = 1024, 253


@dataclass(slots=True)
class _Said:
    """One Event. `count`: how often it was so; `at`: when that was last written, seconds."""

    name: str
    count: int
    at: float


class Recorder:
    """Posts Events to core/v1, which every release has, counts, and kubectl shows."""

    def __init__(self, connection: Connection, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._connection, self._clock = connection, clock
        self._instance = os.environ.get("POD_NAME") or socket.gethostname()
        self._said: dict[tuple[str, str, str], _Said] = {}

    async def record(self, resource: Resource, type_: str, reason: str, message: str, subject: str = "") -> None:
        """Say something of a resource; `type_` is Normal or Warning. What cannot be posted is logged.

        The same thing is what has the same reason and subject, or the same message where no subject is named.
        """
        key, now = (resource.metadata.uid or resource.identity, reason, subject or message), self._clock()
        said = self._said.get(key)
        if said is not None:
            said.count += 1
            if now.timestamp() - said.at < QUIET_S:
                return
        try:
            if said is None or not await self._again(resource, message, said, now):
                count = said.count if said else 1
                self._said[key] = _Said(_name(resource, key, now), count, now.timestamp())
                await self._post(resource, type_, reason, message, self._said[key], now)
        except ApiError as error:
            log.warning("the Event %s of %s cannot be posted: %s", reason, resource.identity, error)
        self._forget()

    async def _again(self, resource: Resource, message: str, said: _Said, now: datetime) -> bool:
        """Count the Event up. Whether it was still there: the API server keeps Events for an hour or so."""
        said.at = now.timestamp()
        change = {"count": said.count, "lastTimestamp": timestamp(now), "message": shortened(message, _MESSAGE)}
        try:
            await self._connection.merge(EVENT, (resource.namespace, said.name), change, manager=COMPONENT)
        except NotFoundError:
            return False
        return True

    async def _post(
        self, resource: Resource, type_: str, reason: str, message: str, said: _Said, now: datetime
    ) -> None:
        metadata = resource.metadata
        about = {
            "apiVersion": API_VERSION,
            "kind": type(resource).__name__,
            "namespace": resource.namespace,
            "name": resource.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        body: dict[str, Any] = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"namespace": resource.namespace, "name": said.name},
            "involvedObject": {name: value for name, value in about.items() if value},
            "type": type_,
            "reason": reason,
            "message": shortened(message, _MESSAGE),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": said.count,
        }
        await self._connection.create(EVENT, body, manager=COMPONENT)

    def _forget(self) -> None:
        """The oldest, once there are too many."""
        while len(self._said) > KEPT:
            del self._said[next(iter(self._said))]


class Announcer:
    """Says on a resource, as an Event, what changed in its status."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """`now` was written in place of `before`."""
        told = (build_events, scaling_events, bottleneck_events, cordon_events)
        for each in (event for events in told for event in events(before, now)):
            await self._recorder.record(resource, each.type, each.reason, each.message, each.subject)
        ready = now.condition(ConditionType.READY)
        former = before.condition(ConditionType.READY) if before else None
        if ready is None or (former is not None and (former.status, former.reason) == (ready.status, ready.reason)):
            return
        stuck = _is(now, ConditionType.STALLED)
        if not stuck and _is(now, ConditionType.RECONCILING):
            return  # on its way: how it ends is what people should notice
        await self._recorder.record(resource, WARNING if stuck else NORMAL, str(ready.reason), ready.message)


def _name(resource: Resource, key: tuple[str, str, str], now: datetime) -> str:
    """A name that no other Event has, and that begins with the resource's."""
    digits = hashlib.sha256("\0".join((*key, now.isoformat())).encode()).hexdigest()[:16]
    return f"{resource.name[: _NAME - len(digits) - 1].rstrip('.-')}.{digits}"


def _is(status: Status, kind: ConditionType) -> bool:
    condition = status.condition(kind)
    return condition is not None and condition.status is ConditionStatus.TRUE
