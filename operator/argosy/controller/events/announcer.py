"""Kubernetes Events of changes that users should notice, on the resource concerned."""

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
from argosy.controller.events.announcements import (
    NORMAL,
    WARNING,
    bottleneck_events,
    build_events,
    cordon_events,
    footprint_events,
    scaling_events,
)
from argosy.controller.events.consolidation import consolidation_events
from argosy.controller.events.preemption import preemption_events
from argosy.controller.events.rollouts import rollout_events
from argosy_common.wording import shortened

log = logging.getLogger(__name__)

COMPONENT = "argosy"
REPEAT_S = 300.0
"""How long an Event of a resource is not repeated; when it is, it counts how often it occurred."""
MOST_EVENTS = 2000
"""How many Events are stored, to count their repetitions."""
_MESSAGE, _NAME = 1024, 253


@dataclass(slots=True)
class _Posted:
    """A posted Event. `count`: its occurrences; `at`: when the count was last written, in seconds."""

    name: str
    count: int
    at: float


class Recorder:
    """Posts Events in core/v1, which all releases of Kubernetes have, with counts, and kubectl shows."""

    def __init__(self, connection: Connection, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._connection, self._clock = connection, clock
        self._instance = os.environ.get("POD_NAME") or socket.gethostname()
        self._posted: dict[tuple[str, str, str], _Posted] = {}

    async def record(self, resource: Resource, type_: str, reason: str, message: str, subject: str = "") -> None:
        """Post an Event of a resource; `type_` is Normal or Warning. Errors are logged.

        An Event repeats another one with the same reason and subject, or the same message where it has no subject.
        """
        key, now = (resource.metadata.uid or resource.identity, reason, subject or message), self._clock()
        posted = self._posted.get(key)
        if posted is not None:
            posted.count += 1
            if now.timestamp() - posted.at < REPEAT_S:
                return
        try:
            if posted is None or not await self._again(resource, message, posted, now):
                count = posted.count if posted else 1
                self._posted[key] = _Posted(_name(resource, key, now), count, now.timestamp())
                await self._post(resource, type_, reason, message, self._posted[key], now)
        except ApiError as error:
            log.warning("the Event %s of %s cannot be posted: %s", reason, resource.identity, error)
        self._forget()

    async def _again(self, resource: Resource, message: str, posted: _Posted, now: datetime) -> bool:
        """Increase the count of an Event. Return whether it still exists: Events are deleted after an hour or so."""
        posted.at = now.timestamp()
        change = {"count": posted.count, "lastTimestamp": timestamp(now), "message": shortened(message, _MESSAGE)}
        try:
            await self._connection.merge(EVENT, (resource.namespace, posted.name), change, manager=COMPONENT)
        except NotFoundError:
            return False
        return True

    async def _post(
        self, resource: Resource, type_: str, reason: str, message: str, posted: _Posted, now: datetime
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
            "metadata": {"namespace": resource.namespace, "name": posted.name},
            "involvedObject": {name: value for name, value in about.items() if value},
            "type": type_,
            "reason": reason,
            "message": shortened(message, _MESSAGE),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": posted.count,
        }
        await self._connection.create(EVENT, body, manager=COMPONENT)

    def _forget(self) -> None:
        """Forget the oldest Events, once there are too many."""
        while len(self._posted) > MOST_EVENTS:
            del self._posted[next(iter(self._posted))]


class Announcer:
    """Posts an Event for each change of a resource's status that users should notice."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """Post what changed when the status `now` was written in place of `before`."""
        sources = (
            build_events,
            scaling_events,
            bottleneck_events,
            footprint_events,
            cordon_events,
            consolidation_events,
            preemption_events,
            rollout_events,
        )
        for announcement in (event for events in sources for event in events(before, now)):
            await self._recorder.record(
                resource, announcement.type, announcement.reason, announcement.message, announcement.subject
            )
        ready = now.condition(ConditionType.READY)
        former = before.condition(ConditionType.READY) if before else None
        if ready is None or (former is not None and (former.status, former.reason) == (ready.status, ready.reason)):
            return
        stuck = _is(now, ConditionType.STALLED)
        if not stuck and _is(now, ConditionType.RECONCILING):
            return  # on its way: how it ends is what people should notice
        await self._recorder.record(resource, WARNING if stuck else NORMAL, str(ready.reason), ready.message)


def _name(resource: Resource, key: tuple[str, str, str], now: datetime) -> str:
    """Return a unique name that begins with the resource's."""
    digits = hashlib.sha256("\0".join((*key, now.isoformat())).encode()).hexdigest()[:16]
    return f"{resource.name[: _NAME - len(digits) - 1].rstrip('.-')}.{digits}"


def _is(status: Status, kind: ConditionType) -> bool:
    condition = status.condition(kind)
    return condition is not None and condition.status is ConditionStatus.TRUE
