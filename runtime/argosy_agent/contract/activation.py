"""What passes between the operator and a pool's activator: where models answer, and who waits for them. Pure.

The activator is what requests for a model reach while no server has it: it holds them, says so, and passes them on to
where the model is ready by then. Both texts are checked field by field when they are read: people edit ConfigMaps.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .fields import DocumentError, Fields, document

MEMBERS_KEY = "members.json"
"""The key of the activator's ConfigMap under which its `activation_text` stands."""
HELD_SUFFIX = ".held.json"
"""What follows a Pod's UID in the key of the state ConfigMap under which its `held_text` stands: Pods of two releases
run side by side for a while, and each says whom it holds."""
_MOST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that has the model ready: its address without brackets, and the ports of both protocols."""

    host: str
    http: int
    grpc: int


@dataclass(frozen=True, slots=True)
class ActivatedMember:
    """A model or an ensemble that requests may be held for.

    `name` is the resource's, `model` what clients ask for. `timeout_s`: the longest that a request is held. `reason`:
    why no server has it now, for the one who waited in vain; empty where some has, or nothing is known.
    """

    name: str
    model: str
    timeout_s: float
    endpoints: tuple[Endpoint, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Activation:
    """All that one activator is to know; each model once."""

    members: tuple[ActivatedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldRequests:
    """What an activator's Pod, of this UID, says: by resource name the requests that it holds now, and those that found
    no room a moment ago.
    """

    pod: str
    held: Mapping[str, int] = field(default_factory=dict)


def activation_text(activation: Activation) -> str:
    """As JSON, indented for people; the same for equal values."""
    return _text({"members": [_of_member(each) for each in activation.members]})


def parse_activation(text: str) -> Activation:
    """The members in a text. Raises DocumentError, which names the field."""
    fields = document(text, MEMBERS_KEY)
    members = tuple(map(_member, fields.list("members")))
    models = [each.model for each in members]
    twice = sorted({model for model in models if models.count(model) > 1})
    if twice:
        raise DocumentError(f"{fields.at('members')}: {', '.join(twice)} stands there more than once")
    return Activation(members)


def held_key(pod: str) -> str:
    """Where the word of the Pod of this UID stands in the state ConfigMap."""
    return pod + HELD_SUFFIX


def held_text(held: HeldRequests) -> str:
    """As JSON, indented for people; the same for equal values."""
    return _text({"pod": held.pod, "held": {name: held.held[name] for name in sorted(held.held)}})


def parse_held(text: str) -> HeldRequests:
    """What a Pod says. Raises DocumentError, which names the field."""
    fields = document(text, HELD_SUFFIX.removeprefix("."))
    held = fields.mapping("held")
    counts = {name: held.number(name) for name in held.values}
    return HeldRequests(fields.text("pod"), {name: count for name, count in counts.items() if count})


def _of_member(member: ActivatedMember) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": member.name,
        "model": member.model,
        "timeoutSeconds": member.timeout_s,
        "endpoints": [{"host": each.host, "http": each.http, "grpc": each.grpc} for each in member.endpoints],
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
