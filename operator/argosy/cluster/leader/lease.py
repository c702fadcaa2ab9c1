"""Who leads, by a Lease: the rules, without time or network of their own. Pure.

A replica leads while the Lease names it. It renews the Lease well before the others may think it dead; they count from
when they saw the Lease change, so that clocks need not agree. One that cannot renew ends its leadership before the
others may take it. One that ends by itself clears its name, and the next takes over at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MICRO_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Record:
    """A Lease as it stands. `version` tells one writing of it from the next."""

    holder: str
    duration_s: float
    transitions: int
    acquired: str
    version: str


@dataclass(frozen=True, slots=True)
class ObservedRecord:
    """A record, and when this replica first saw it: seconds of its own clock."""

    record: Record
    at: float

    @property
    def expires(self) -> float:
        """When it counts as left behind."""
        return self.at + self.record.duration_s

    def is_free(self, identity: str, now: float) -> bool:
        """Return whether the replica of this identity may take it."""
        return self.record.holder in ("", identity) or now >= self.expires


def seen(before: ObservedRecord | None, record: Record, now: float) -> ObservedRecord:
    """Return what is known once `record` was read: a record that did not change is as old as it was."""
    return before if before is not None and before.record == record else ObservedRecord(record, now)


def record_of(body: Mapping[str, Any]) -> Record:
    """Return the record in a Lease; fields that are missing count as nobody's."""
    spec = body.get("spec") or {}
    return Record(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or 0),
        transitions=int(spec.get("leaseTransitions") or 0),
        acquired=spec.get("acquireTime") or "",
        version=body["metadata"]["resourceVersion"],
    )


def claim(former: Record | None, identity: str, duration_s: int, wall: datetime) -> dict[str, Any]:
    """Return the Lease's spec by which a replica takes it or keeps it; `wall` is UTC, for people to read."""
    now = wall.strftime(MICRO_TIME)
    kept = former is not None and former.holder == identity
    transitions = 0 if former is None else former.transitions + (0 if kept else 1)
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": duration_s,
        "acquireTime": former.acquired if former is not None and kept and former.acquired else now,
        "renewTime": now,
        "leaseTransitions": transitions,
    }


def release(former: Record, wall: datetime) -> dict[str, Any]:
    """Return the Lease's spec by which its holder gives it up."""
    now = wall.strftime(MICRO_TIME)
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": former.acquired or now,
        "renewTime": now,
        "leaseTransitions": former.transitions,
    }
