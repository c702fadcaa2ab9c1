"""`python -m argosy_builder.process.called`: the child's end of `calls`."""

import importlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_agent.jsonfiles import write_text
from argosy_agent.transfer.errors import is_full
from argosy_builder.contract import BuildError

from .tools import die_with_parent


def main(function: str, request: str, answered: str) -> None:
    """Call the function with the arguments in the file `request`; write its result or BuildError to `answered`.

    Any other error ends the process with a traceback, for the parent to read.
    """
    die_with_parent()
    called = _imported(function)
    arguments = json.loads(Path(request).read_text())
    if "progress" in inspect.signature(called).parameters:
        arguments["progress"] = _say
    write_text(Path(answered), json.dumps(_answer(called, arguments)))


def _imported(function: str) -> Callable[..., Any]:
    module, _, name = function.partition(":")
    called: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return called


def _answer(called: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": called(**arguments)}
    except BuildError as error:
        return {"failure": error.failure, "message": error.message, "passes": error.passes}
    except OSError as error:
        if not is_full(error):
            raise
        message = f"the disk that the build works on is full: give it more room ({error})"
        return {"failure": BuildFailure.DISK_FULL, "message": message, "passes": False}


def _say(percent: int, line: str) -> None:
    text = line if percent < 0 else f"::{percent}%:: {line}"
    print(text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
