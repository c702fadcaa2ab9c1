"""The document of one round: what it saw, what it decided, and when."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from argosy.reconcile import RoundOutcome, reconcile
from argosy.replay.codec import DocumentError, decoded_snapshot, encoded
from argosy.replay.differences import differences
from argosy.replay.secrets import without_secrets
from argosy.snapshot import FleetSnapshot

_DIGEST = re.compile("[0-9a-f]{8,}")
FORMAT = 2
"""Rises when a bundle of a former release can no longer be read."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """One round. `decisions`: the outcome as plain JSON values; None where the round ended with `error`.

    `drain_period`: for how long a server that is no longer routed to finishes its requests. `redacted`: the fields
    from which secrets were taken.
    """

    release: str
    now: datetime
    drain_period: timedelta
    snapshot: FleetSnapshot
    decisions: Mapping[str, Any] | None = None
    error: str = ""
    redacted: tuple[str, ...] = ()


def bundle_document(
    release: str,
    snapshot: FleetSnapshot,
    now: datetime,
    drain_period: timedelta,
    result: RoundOutcome | Exception,
) -> dict[str, Any]:
    """Return the document of a round that ended with an outcome or with an error of Argosy's own, without secrets."""
    failed = isinstance(result, Exception)
    seen = {
        "snapshot": encoded(snapshot),
        "decisions": None if failed else encoded(result),
        "error": described(result) if isinstance(result, Exception) else "",
    }
    redacted = without_secrets(seen)
    document = redacted.document
    if redacted.fields and not failed:
        again = reconcile(decoded_snapshot(document["snapshot"]), now, drain_period)
        document = _with_digests_of(again, document)
    return {
        "argosyBundle": FORMAT,
        "release": release,
        "now": now.isoformat(),
        "drainPeriodSeconds": drain_period.total_seconds(),
        "redacted": list(redacted.fields),
        **document,
    }


def _with_digests_of(outcome: RoundOutcome, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a round with the digests that texts have without their secrets, as `outcome` has them.

    Digests tell whether a configuration changed: those of the loaded ones must equal those that are rendered again.
    """
    pairs = differences(document["decisions"], encoded(outcome))
    digests = {one.recorded: one.replayed for one in pairs if _is_digest(one.recorded) and _is_digest(one.replayed)}
    if not digests:
        return document
    pattern = re.compile("|".join(map(re.escape, digests)))
    replaced = pattern.sub(lambda match: digests[match[0]], json.dumps(document))
    changed: dict[str, Any] = json.loads(replaced)
    return changed


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def parsed_bundle(text: str | bytes) -> Bundle:
    """Return the bundle in a text. Raises DocumentError, which names the field."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"this is no JSON: {error}") from error
    _check_format(document)
    try:
        return Bundle(
            release=str(document["release"]),
            now=_moment(document["now"]),
            drain_period=timedelta(seconds=document["drainPeriodSeconds"]),
            snapshot=decoded_snapshot(document["snapshot"]),
            decisions=document["decisions"],
            error=document["error"],
            redacted=tuple(document["redacted"]),
        )
    except KeyError as error:
        raise DocumentError(f"the bundle has no {error}") from error
    except TypeError as error:
        raise DocumentError(f"a field of the bundle has a wrong type: {error}") from error


def _check_format(document: Any) -> None:
    number = document.get("argosyBundle") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(number, int):
        raise DocumentError("this is no bundle: argosyBundle, the number of its format, is missing")
    if number != FORMAT:
        release = document.get("release", "of an unknown release")
        out = f"replay it by the release that wrote it, argosy {release}"
        raise DocumentError(f"this is a bundle of format {number}, and this release reads format {FORMAT}: {out}")


def described(error: Exception) -> str:
    """Return an error of Argosy's own in one line."""
    return f"{type(error).__name__}: {error}"


def _moment(text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise DocumentError(f"now: {error}") from error
    if moment.tzinfo is None:
        raise DocumentError("now: must have a time zone, as 2026-05-04T12:00:00+00:00")
    return moment
