"""The machine's pip settings, so that pip in an image build finds packages where pip here does."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Settings that say where packages come from. Others (caches, user installs) are the machine's own affair.
_WHERE = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "timeout", "default-timeout", "retries",
          "no-index", "proxy")  # fmt: skip
_PLACES = ("index-url", "extra-index-url", "find-links")


@dataclass(frozen=True, slots=True)
class PipSettings:
    """A pip.conf for the build, and the local folders that it names (which the build must see at the same path)."""

    config: str
    folders: tuple[Path, ...]


def of_machine() -> PipSettings:
    """What `pip config list` (files and environment) says here."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    return parse(listed.stdout)


def parse(listed: str) -> PipSettings:
    """From what `pip config list` prints; local places that do not exist are left out. The environment wins."""
    settings: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in _WHERE:
            settings[key] = str(ast.literal_eval(value))
    folders: list[Path] = []
    for key in _PLACES:
        kept = []
        for place in settings.get(key, "").split():
            local = Path(place.removeprefix("file://"))
            if not local.is_absolute() or local.exists():
                kept.append(place)
            if local.is_absolute() and local.exists():
                # An index's pages refer to files beside it.
                folders.append(local.parent if local.name == "simple" else local)
        settings[key] = " ".join(kept)
    if CERTIFICATES.exists():
        settings["cert"] = str(CERTIFICATES)
    lines = [f"{key} = {value}" for key, value in sorted(settings.items()) if value]
    return PipSettings("\n".join(["[global]", *lines, ""]), tuple(dict.fromkeys(folders)))
