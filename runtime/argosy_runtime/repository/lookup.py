"""Which version answers a request, or why none does, in Triton's words."""

from collections.abc import Mapping

from argosy_runtime.errors import invalid, not_found, unavailable
from argosy_runtime.modelconfig.versions import number_of

from .records import UNLOADED, ModelRecord, VersionRecord
from .serving.served import ServedVersion


def find(records: Mapping[str, ModelRecord], name: str, version: str) -> ServedVersion:
    """Return the version named; where `version` is "", the latest that is ready. Raises ServingError."""
    record = records.get(name)
    if record is None or not record.versions:
        raise not_found(f"Request for unknown model: '{name}' is not found")
    if not version:
        return _latest(record)
    held = record.versions.get(_number(version))
    if held is None:
        raise not_found(f"Request for unknown model: '{name}' version {version} is not found")
    if held.served is None or not held.served.ready:
        text = f"Request for unknown model: '{name}' version {version} is not at ready state"
        raise unavailable("; ".join(filter(None, [text, _why_not(held)])))
    return held.served


def _latest(record: ModelRecord) -> ServedVersion:
    latest = max(record.serving(), default=None, key=lambda pair: pair[0])
    if latest is None:
        reasons = [_why_not(held) for _, held in sorted(record.versions.items())]
        text = f"Request for unknown model: '{record.name}' has no available versions"
        # What is in service and cannot answer now comes back by itself: a client may try again.
        kind = unavailable if record.serves else not_found
        raise kind("; ".join([text, *filter(None, reasons)]))
    return latest[1]


def _number(version: str) -> int:
    number = number_of(version)
    if number is None:
        raise invalid(
            f"failed to get model version from specified version string '{version}' "
            "(details: not a 64-bit number), version should be an integral value > 0"
        )
    return number


def _why_not(held: VersionRecord) -> str:
    """Why a version does not answer; "" where there is no more to say than that it is not loaded."""
    return "" if held.reason == UNLOADED else held.reason
