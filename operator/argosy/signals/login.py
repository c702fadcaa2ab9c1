"""The login at a Prometheus, from the Secret that the pool names. Pure."""

import base64
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEYS = ("token", "username", "password")


@dataclass(frozen=True, slots=True)
class Login:
    """A token, or a username and a password, or nothing. `error`: why it is not known, and the way out."""

    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    error: str = ""


def login_of(name: str, secret: Mapping[str, Any]) -> Login:
    """Return the login that a Secret contains. `name`: `namespace/name`; `secret`: its body."""
    data = secret.get("data") or {}
    try:
        values = {key: base64.b64decode(data[key], validate=True).decode().strip() for key in KEYS if data.get(key)}
    except (Error, ValueError, TypeError) as error:
        return Login(error=f"Secret {name} cannot be read: {error}")
    if "token" in values:
        return Login(token=values["token"])
    if "username" in values and "password" in values:
        return Login(username=values["username"], password=values["password"])
    there = ", ".join(sorted(data)) or "nothing"
    return Login(error=f"Secret {name} has neither token nor username and password, but {there}")
