"""The rules of leader election on a Lease. Pure.

A replica leads while the Lease has its identity. The others measure the lease duration from when they observed a
change, so that clocks need not agree. A leader that cannot renew the Lease stops leading before the others may take it.
One that shuts down clears the holder, so that another one takes over at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MICRO_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Record:
    """The election record in a Lease. `version` is the resource version."""

    holder: str
    duration_s: float
    transitions: int
    acquired: str
    version: str


@dataclass(frozen=True, slots=True)
class ObservedRecord:
    """A record, and when this replica first observed it, in seconds of its own clock."""

    record: Record
    at: float

    @property
    def expires(self) -> float:
        """When others may take the Lease."""
        return self.at + self.record.duration_s

    def is_free(self, identity: str, now: float) -> bool:
        """Return whether the replica of this identity may take the Lease."""
        return self.record.holder in ("", identity) or now >= self.expires


def observed(before: ObservedRecord | None, record: Record, now: float) -> ObservedRecord:
    """Return the observation of `record`; of an unchanged record the time stays."""
    return before if before is not None and before.record == record else ObservedRecord(record, now)


def record_of(body: Mapping[str, Any]) -> Record:
    """Return the record in a Lease; without its fields it has no holder."""
    spec = body.get("spec") or {}
    return Record(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or 0),
        transitions=int(spec.get("leaseTransitions") or 0),
        acquired=spec.get("acquireTime") or "",
        version=body["metadata"]["resourceVersion"],
    )


def claim(former: Record | None, identity: str, duration_s: int, wall: datetime) -> dict[str, Any]:
    """Return the spec by which a replica acquires or renews the Lease; `wall` is UTC, for people to read."""
    now = wall.strftime(MICRO_TIME)
    renewal = former is not None and former.holder == identity
    transitions = 0 if former is None else former.transitions + (0 if renewal else 1)
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": duration_s,
        "acquireTime": former.acquired if former is not None and renewal and former.acquired else now,
        "renewTime": now,
        "leaseTransitions": transitions,
    }


def release(former: Record, wall: datetime) -> dict[str, Any]:
    """Return the spec by which the holder releases the Lease."""
    now = wall.strftime(MICRO_TIME)
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": former.acquired or now,
        "renewTime": now,
        "leaseTransitions": former.transitions,
    }
