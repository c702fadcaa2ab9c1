"""A Python function in a child process, which sends back its result or exception, and its progress."""

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError, Progress

from .causes import Cause
from .tools import Limits, tool

_PERCENT = re.compile(r"^::(\d{1,3})%:: ?(.*)")


def call(
    function: str,
    arguments: Mapping[str, Any],
    progress: Progress,
    *,
    causes: Sequence[Cause] = (),
    environment: Mapping[str, str] | None = None,
    limits: Limits = Limits(),  # noqa: B008  # frozen
) -> Any:
    """Return what `module:function` returns for these arguments, in a process of its own. Both are JSON.

    The function may take `progress` too, for percents (0 to 100) and lines. Raises BuildError: that of the function, or
    those of `tool`.
    """
    name = function.partition(":")[2].replace("_", " ")
    with tempfile.TemporaryDirectory(prefix="argosy-call-") as folder:
        request, answered = Path(folder, "arguments.json"), Path(folder, "answer.json")
        request.write_text(json.dumps(arguments))
        command = (sys.executable, "-m", f"{__package__}.called", function, str(request), str(answered))
        tool(
            command,
            lambda line: _report(progress, line),
            name=name,
            causes=causes,
            environment=environment,
            limits=limits,
        )
        answer = json.loads(answered.read_text())
    if "failure" in answer:
        raise BuildError(BuildFailure(answer["failure"]), answer["message"], passes=answer["passes"])
    return answer["value"]


def _report(progress: Progress, line: str) -> None:
    match = _PERCENT.match(line)
    if match is None:
        progress(-1, line)
    else:
        progress(min(int(match[1]), 100), match[2])
