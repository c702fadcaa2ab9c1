"""The machine's pip settings, so that pip in an image build finds packages where pip here does, and uv, too, which does
not read them.

As a script it prints uv's, for a machine where nothing is installed yet.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Settings that say where packages come from. Others (caches, user installs) are the machine's own affair.
_WHERE = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "timeout", "default-timeout", "retries",
          "no-index", "proxy")  # fmt: skip
_CONSTRAINTS = "constraint"
_LOCATIONS = ("index-url", "extra-index-url", "find-links")
_OF_UV = {"extra-index-url": "extra-index-url", "find-links": "find-links", "trusted-host": "allow-insecure-host"}


@dataclass(frozen=True, slots=True)
class PipSettings:
    """A pip.conf, a uv.toml with the same places and the hosts to be trusted, and the local folders that they name
    (which a build must see at the same path). `constraints`: files that limit the releases, which neither of the two
    has. `has_sources`: something says where packages come from.
    """

    config: str
    uv: str
    folders: tuple[Path, ...]
    constraints: tuple[Path, ...]
    has_sources: bool


def of_machine() -> PipSettings:
    """Return the settings that `pip config list` (files and environment) prints here."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    return parse(listed.stdout)


def parse(listed: str) -> PipSettings:
    """Return the settings that `pip config list` prints; local folders that do not exist are left out. The environment
    wins.
    """
    settings: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in (*_WHERE, _CONSTRAINTS):
            settings[key] = str(ast.literal_eval(value))
    constraints = tuple(map(Path, settings.pop(_CONSTRAINTS, "").split()))
    folders: list[Path] = []
    for key in _LOCATIONS:
        reachable = []
        for location in settings.get(key, "").split():
            local = Path(location.removeprefix("file://"))
            if not local.is_absolute() or local.exists():
                reachable.append(location)
            if local.is_absolute() and local.exists():
                # An index's pages refer to files in its parent folder.
                folders.append(local.parent if local.name == "simple" else local)
        settings[key] = " ".join(reachable)
    has_sources = any(settings.values())
    if CERTIFICATES.exists():
        settings["cert"] = str(CERTIFICATES)
    settings = {key: value for key, value in sorted(settings.items()) if value}
    lines = [f"{key} = {value}" for key, value in settings.items()]
    config = "\n".join(["[global]", *lines, ""])
    return PipSettings(config, _of_uv(settings), tuple(dict.fromkeys(folders)), constraints, has_sources)


def _of_uv(settings: Mapping[str, str]) -> str:
    """Return the same as a uv.toml. pip takes the newest release of all indexes; uv, by default, of the first that has
    any.
    """
    lines = ['index-strategy = "unsafe-best-match"', "system-certs = true"]
    for key, value in settings.items():
        if key == "index-url":
            lines.append(f"{key} = {json.dumps(value)}")
        elif key in _OF_UV:
            lines.append(f"{_OF_UV[key]} = {json.dumps(value.split())}")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(of_machine().uv, end="")
