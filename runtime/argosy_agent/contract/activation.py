"""The texts between the operator and a pool's activator: where models answer, and which requests wait. Pure.

The activator receives requests for a model while no server has it, reports them, and forwards them once a server has
the model ready. Both texts are checked field by field when they are read: people edit ConfigMaps.

Many members stand in parts, each of which a ConfigMap holds. A member stays in its part as long as their number is the
same, so that a change of one member writes one part.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .fields import DocumentError, Fields, check_unique, document

MEMBERS_KEY = "members.json"
"""The key of an activator's ConfigMap under which the text of one part stands."""
PART_BYTES = 900_000
"""The most that one part may have of a ConfigMap's 1 MiB."""
MAX_REPORTED = 1000
"""The most names that one Pod says it holds requests for: three Pods share a ConfigMap while one is replaced."""
QUEUED_SUFFIX = ".held.json"
"""What follows a Pod's UID in the key of the state ConfigMap under which its `queued_text` stands: Pods of two releases
run side by side for a while, and each says whom it holds."""
_MOST_PORT = 65535
_MOST_PARTS = 1 << 12


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that has the model ready: its address without brackets, and the ports of both protocols."""

    host: str
    http: int
    grpc: int


@dataclass(frozen=True, slots=True)
class ActivatedMember:
    """A model or an ensemble whose requests may wait.

    `name` is the resource's, `model` the name that clients use. `timeout_s`: the longest wait of a request. `reason`:
    why no server has it now, for clients that waited in vain; empty where a server has it, or nothing is known.
    """

    name: str
    model: str
    timeout_s: float
    endpoints: tuple[Endpoint, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Activation:
    """All members of one activator; each model once."""

    members: tuple[ActivatedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class ActivationPart:
    """The members of one of `parts` parts. `number` is its index, from 0."""

    members: tuple[ActivatedMember, ...] = ()
    number: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class QueuedRequests:
    """The report of an activator's Pod, with its UID. By resource name: the queued requests, and those that were
    recently rejected because the queue was full.
    """

    pod: str
    queued: Mapping[str, int] = field(default_factory=dict)


def activation_texts(activation: Activation, most: int = PART_BYTES) -> tuple[str, ...]:
    """Return all members as JSON, indented for people, in 1, 2, 4 … parts of at most `most` bytes; the
    same for equal values.

    A part with one member alone may be larger.
    """
    count, longest = 1, len(activation.members)
    while True:
        parts: list[list[ActivatedMember]] = [[] for _ in range(count)]
        for member in activation.members:
            parts[part_of(member.model, count)].append(member)
        texts = tuple(_part_text(members, number, count) for number, members in enumerate(parts))
        if count >= longest or all(len(text.encode()) <= most for text in texts):
            return texts
        count *= 2


def part_of(model: str, parts: int) -> int:
    """Return the number of the part of a model, by the name that clients use: two members of one name are in the same
    part.
    """
    return zlib.crc32(model.encode()) % parts


def part_name(first: str, number: int) -> str:
    """Return the name of the ConfigMap, or the file, of a part, from that of the first one."""
    return f"{first}-p{number}" if number else first


def parse_part(text: str) -> ActivationPart:
    """Return the members in a text. Raises DocumentError, which names the field."""
    fields = document(text, MEMBERS_KEY)
    members = tuple(map(_member, fields.list("members")))
    check_unique((member.model for member in members), fields.at("members"))
    number, parts = fields.number("part", 0), fields.number("parts", 1)
    if not number < parts <= _MOST_PARTS:
        at_most = f"of at most {_MOST_PARTS}, counted from 0"
        raise DocumentError(f"{fields.at('part')} must be one of parts, {at_most}, and is {number} of {parts}")
    return ActivationPart(members, number, parts)


def queued_key(pod: str) -> str:
    """Return the key of the report of the Pod of this UID in the state ConfigMap."""
    return pod + QUEUED_SUFFIX


def queued_text(queued: QueuedRequests) -> str:
    """Return a report as JSON, indented for people; the same for equal values.

    Of more names than `MAX_REPORTED` it has those with the most requests, and the number of the others: those are
    reported once the first ones are served.
    """
    reported = sorted(queued.queued, key=lambda name: (-queued.queued[name], name))[:MAX_REPORTED]
    more = {"leftOut": left} if (left := len(queued.queued) - len(reported)) else {}
    return _text({"pod": queued.pod, "held": {name: queued.queued[name] for name in sorted(reported)}, **more})


def parse_queued(text: str) -> QueuedRequests:
    """Return the report of a Pod. Raises DocumentError, which names the field."""
    fields = document(text, QUEUED_SUFFIX.removeprefix("."))
    queued = fields.mapping("held")
    counts = {name: queued.number(name) for name in queued.values}
    return QueuedRequests(fields.text("pod"), {name: count for name, count in counts.items() if count})


def _part_text(members: Iterable[ActivatedMember], number: int, parts: int) -> str:
    position = {"part": number, "parts": parts} if parts > 1 else {}
    return _text({**position, "members": [_of_member(member) for member in members]})


def _of_member(member: ActivatedMember) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": member.name,
        "model": member.model,
        "timeoutSeconds": member.timeout_s,
        "endpoints": [asdict(endpoint) for endpoint in member.endpoints],
    }
    return {**values, "reason": member.reason} if member.reason else values


def _member(fields: Fields) -> ActivatedMember:
    timeout = fields.amount("timeoutSeconds")
    if timeout < 0:
        raise DocumentError(f"{fields.at('timeoutSeconds')} must not be negative, and is {timeout:g}")
    return ActivatedMember(
        name=_word(fields, "name"),
        model=_word(fields, "model"),
        timeout_s=timeout,
        endpoints=tuple(map(_endpoint, fields.list("endpoints", []))),
        reason=fields.text("reason", ""),
    )


def _endpoint(fields: Fields) -> Endpoint:
    return Endpoint(_word(fields, "host"), _port(fields, "http"), _port(fields, "grpc"))


def _word(fields: Fields, key: str) -> str:
    value = fields.text(key)
    if not value:
        raise DocumentError(f"{fields.at(key)} must not be empty")
    return value


def _port(fields: Fields, key: str) -> int:
    value = fields.number(key)
    if not 0 < value <= _MOST_PORT:
        raise DocumentError(f"{fields.at(key)} must be a port from 1 to {_MOST_PORT}, and is {value}")
    return value


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
