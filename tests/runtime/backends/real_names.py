"""Run by a test with the path of the real bindings: what they have, as JSON."""

import json
import re
import sys

sys.path.insert(0, sys.argv[1])
import tensorrt_lean_bindings as real  # type: ignore[import-not-found]

CLASSES = ("Runtime", "ICudaEngine", "IExecutionContext")


class Allocator(real.IOutputAllocator):  # type: ignore[misc]
    """Its methods are there to be written, so that one can be made says that it may be a base."""

    def __init__(self) -> None:
        real.IOutputAllocator.__init__(self)


class Log(real.ILogger):  # type: ignore[misc]
    """Likewise."""

    def __init__(self) -> None:
        real.ILogger.__init__(self)


def arguments(method: object) -> list[str] | None:
    """Return the names of a method's arguments, of its first overload; None where the binding does not list them."""
    text = str(method.__doc__ or "")
    result = re.search(r"\(self: [\w.:]+(?:, )?(.*?)\) ->", text)
    return None if result is None else re.findall(r"(?:^|, )(\w+): ", result[1])


print(
    json.dumps(
        {
            "version": real.__version__,
            "classes": {
                name: {
                    item: arguments(getattr(getattr(real, name), item))
                    for item in dir(getattr(real, name))
                    if not item.startswith("_")
                }
                for name in CLASSES
            },
            "enums": {
                name: sorted(getattr(real, name).__members__)
                for name in dir(real)
                if hasattr(getattr(real, name), "__members__")
            },
            "severities": [getattr(real.ILogger, name).name for name in ("INTERNAL_ERROR", "ERROR", "WARNING")],
            "made": [bool(Allocator()), bool(Log())],
        }
    )
)
