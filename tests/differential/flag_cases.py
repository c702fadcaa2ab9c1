"""The flags that a tritonserver names when it is asked for help, each with the form of its value."""

import os
import re
import subprocess
from pathlib import Path

from tests.peers.triton import environment, install

_FLAG = re.compile(r"^  --(?P<name>[a-z0-9-]+)(?: <(?P<value>.*)>)?$", re.MULTILINE)


def flags_in(text: str) -> dict[str, str]:
    """Return the flags of a help text, and the forms of their values: `integer`, `<string>:<string>=<string>` …"""
    return {match["name"]: match["value"] or "" for match in _FLAG.finditer(text)}


def help_of_triton() -> str:
    """Return the help text of the real tritonserver."""
    return output_of_triton("--help")


def output_of_triton(*words: str) -> str:
    """Return what the real tritonserver prints before it ends for these words."""
    folder: Path = install()
    program = folder / "pytriton" / "tritonserver" / "bin" / "tritonserver"
    run = subprocess.run(
        [str(program), *words], env={**os.environ, **environment(folder)}, capture_output=True, text=True, timeout=60
    )
    return run.stdout + run.stderr
