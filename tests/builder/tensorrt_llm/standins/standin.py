"""What the stand-ins share: they write down their calls, and fail as the environment says."""

import json
import os
import sys
from pathlib import Path
from typing import Any


def called(name: str, **arguments: Any) -> None:
    """Write a call down; fail if `STANDIN_FAIL`, `name|message|exit code`, names it."""
    with Path(os.environ["STANDIN_CALLS"]).open("a") as file:
        file.write(json.dumps({"call": name, **arguments}) + "\n")
    failing, _, rest = os.environ.get("STANDIN_FAIL", "").partition("|")
    if failing != name:
        return
    message, _, code = rest.partition("|")
    print(message.replace("\\n", "\n"), flush=True)
    if code.startswith("-"):
        os.kill(os.getpid(), int(code[1:]))
    sys.exit(int(code or 1))


def changed(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with what `STANDIN_CHANGE` (`{"name:path.of.keys": value}`) puts into it."""
    for key, value in json.loads(os.environ.get("STANDIN_CHANGE", "{}")).items():
        whose, _, path = key.partition(":")
        if whose != name:
            continue
        at = config
        *parents, last = path.split(".")
        for part in parents:
            at = at[part]
        at[last] = value
    return config


def typed(name: str, value: Any, *kinds: Any) -> None:
    """Raise unless a value is of one of these types, or is one of these words."""
    for kind in kinds:
        if isinstance(kind, type):
            if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
                return
        elif value == kind:
            return
    raise TypeError(f"{name}={value!r} is none of {kinds}")
