"""The measurement in a Job's Pod (`python -m argosy.local.profiling.in_job`), as `argosy profile --job` renders it.

The request is in a variable. Progress and result are lines of the standard output.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy.api.documents import parse_body
from argosy.bench.profile.lines import PROGRESS, Measured, result_line
from argosy.local.machine import this_machine
from argosy.local.profiling.manifest import Profiled, find
from argosy.local.profiling.serving import StoppedError
from argosy.local.profiling.sweep import Steps, sweep
from argosy.local.servers.ports import ListenError
from argosy.local.state import StateFolder

VARIABLE: Final = "ARGOSY_PROFILE"
"""The variable with the request."""


def request_text(profiled: Profiled, steps: Steps) -> str:
    """Return a request as the variable has it."""
    document = {
        "model": profiled.model.name,
        "resources": list(profiled.bodies()),
        "batches": list(steps.batches),
        "instances": list(steps.instances),
        "seconds": steps.seconds,
        "shapes": {name: list(sizes) for name, sizes in steps.shapes.items()},
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def read_request(text: str) -> tuple[Profiled, Steps]:
    """Return the model and the steps of a request. Raises ValueError for one of another release."""
    try:
        document = json.loads(text)
        profiled = _profiled(document)
        steps = Steps(
            document["batches"],
            document["instances"],
            document["seconds"],
            {name: tuple(sizes) for name, sizes in document["shapes"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no request of this release: {error!r}; use an image of the same one") from error
    return profiled, steps


def _profiled(document: Mapping[str, Any]) -> Profiled:
    parsed = [parse_body(body) for body in document["resources"]]
    problems = [str(problem) for _, of_body in parsed for problem in of_body]
    if problems:
        raise ValueError("; ".join(problems))
    profiled = find(document["model"], [resource for resource, _ in parsed if resource is not None])
    if isinstance(profiled, str):
        raise ValueError(profiled)
    return profiled


def main() -> int:
    """Measure what the variable requests; return the exit status."""
    try:
        profiled, steps = read_request(os.environ.get(VARIABLE, ""))
        print(result_line(asyncio.run(_measured(profiled, steps))), flush=True)
    except (ValueError, ListenError) as error:
        print(f"{PROGRESS}{error}", flush=True)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError, StoppedError):
        return 130
    return 0


async def _measured(profiled: Profiled, steps: Steps) -> Measured:
    node = this_machine()
    with tempfile.TemporaryDirectory(prefix="argosy-profile-") as folder:
        state = StateFolder(Path(folder))
        state.create()
        measured = await sweep(profiled, steps, node, state, lambda line: print(PROGRESS + line, flush=True))
    return Measured(measured, node.product or node.name)


if __name__ == "__main__":
    sys.exit(main())
