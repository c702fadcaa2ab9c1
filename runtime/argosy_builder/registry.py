"""The builders by name. Each is imported when a request names it: its tools take seconds, or are not there."""

import importlib
from difflib import get_close_matches
from typing import cast

from argosy_agent.contract.builds import BuildFailure

from .contract import Builder, BuildError

_EXTRAS = {
    "onnxruntime": "builder",
    "aotinductor": "builder",
    "tensorrt": "tensorrt",
    "tensorrt_llm": "tensorrt-llm",
}
"""Each builder, and the extra that installs what it needs."""


def names() -> tuple[str, ...]:
    """Return every builder there is, installed or not."""
    return tuple(_EXTRAS)


def resolve(name: str) -> Builder:
    """Return the builder called so.

    Raises BuildError: INVALID_OPTIONS where there is none, BUILDER_MISSING where a package of its is not installed.
    """
    if name not in _EXTRAS:
        near = get_close_matches(name, _EXTRAS, 1)
        meant = f"; do you mean {near[0]}?" if near else ""
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.builder: there is no builder {name!r}, only {', '.join(_EXTRAS)}{meant}",
        )
    try:
        return cast(Builder, importlib.import_module(f"{__package__}.{name}").BUILDER)
    except ModuleNotFoundError as missing:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"engine.builder: {name} needs the package {missing.name!r}, which this image has not: "
            f"pip install 'argosy[{_EXTRAS[name]}]', or set engine.image to an image that has it",
        ) from missing
