"""An engine's options held against its builder's table, and against one another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from argosy.api.engine.precision import Precision
from argosy.api.values.base import Fault
from argosy.api.values.nearest import did_you_mean

from . import plain
from .aotinductor import AOTINDUCTOR
from .asked import Asked, Split, wrong
from .onnxruntime import ONNXRUNTIME
from .option import Option, choice
from .precisions import PRECISIONS
from .tensorrt import TENSORRT
from .tensorrt_llm import (
    ELSEWHERE,
    ENGINE,
    PYTORCH,
    QUANTIZATION,
    SERVING,
    contradictions,
    parallel_contradictions,
)

BACKEND = choice(
    "tensorrt builds an engine; pytorch keeps the checkpoint, which TensorRT-LLM's newer path runs.",
    "tensorrt",
    "pytorch",
    default="tensorrt",
)
PATH = "tensorrt_llm pytorch"
TABLES: Mapping[str, Mapping[str, Option]] = {
    "tensorrt_llm": {"backend": BACKEND, **ENGINE, **QUANTIZATION, **SERVING},
    PATH: {"backend": BACKEND, **PYTORCH, **QUANTIZATION},
    "tensorrt": TENSORRT,
    "onnxruntime": ONNXRUNTIME,
    "aotinductor": AOTINDUCTOR,
}
"""The options by builder; TensorRT-LLM's engine-less path has a table of its own."""

_RULES: Mapping[str, Callable[[Asked], Iterator[Fault]]] = {
    "tensorrt_llm": contradictions,
    PATH: contradictions,
    "tensorrt": plain.tensorrt,
    "onnxruntime": plain.onnxruntime,
}


def table_of(builder: str, options: Mapping[str, Any]) -> str:
    """Return the name of the table that holds for these options."""
    return PATH if builder == "tensorrt_llm" and options.get("backend") == "pytorch" else builder


def option_faults(
    builder: str, precision: Precision | None, options: Mapping[str, Any], calibrated: bool
) -> Iterator[Fault]:
    """Yield all that is wrong with an engine's options and precision, relative to the engine."""
    name = table_of(builder, options)
    if precision is not None and precision not in PRECISIONS[name]:
        yield Fault(f"{_called(name)} makes {', '.join(PRECISIONS[name])}, and not {precision}", ("precision",))
        precision = None
    by_themselves = [*_by_themselves(name, options)]
    yield from by_themselves
    bad = {fault.path[1] for fault in by_themselves}
    good = {key: value for key, value in options.items() if key not in bad}
    if name in _RULES:
        yield from _RULES[name](Asked(precision, good, calibrated))


def split_faults(builder: str, options: Mapping[str, Any], split: Split) -> Iterator[Fault]:
    """Yield what contradicts the model's `parallelism` and `maxBatchSize`, relative to the engine."""
    name = table_of(builder, options)
    if builder == "tensorrt_llm":
        bad = {fault.path[1] for fault in _by_themselves(name, options)}
        good = {key: value for key, value in options.items() if key not in bad}
        yield from parallel_contradictions(Asked(options=good), split)


def building(builder: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide an engine's files: a build is asked for these alone, so that a change of how it is
    served builds nothing.
    """
    table = TABLES[table_of(builder, options)]
    return {name: value for name, value in options.items() if name not in table or not table[name].serving}


def _by_themselves(name: str, options: Mapping[str, Any]) -> Iterator[Fault]:
    table = TABLES[name]
    for key, value in options.items():
        known = table.get(key)
        if known is not None:
            yield from known.faults(value, ("options", key))
        else:
            yield wrong(key, _unknown(name, key))


def _unknown(name: str, key: str) -> str:
    table = TABLES[name]
    if name in ("tensorrt_llm", PATH):
        if key in ELSEWHERE:
            return f"is no option here: {ELSEWHERE[key]}"
        other, said = (PATH, "pytorch") if name == "tensorrt_llm" else ("tensorrt_llm", "tensorrt")
        if key in TABLES[other]:
            return f"is an option of backend: {said} alone; leave it out, or set backend"
    near = did_you_mean(key, table)
    return f"{_called(name)} has no such option{near if near.startswith(';') else _few(table)}"


def _few(table: Mapping[str, Option]) -> str:
    """What is known, where it is few enough to read."""
    return f" (known: {', '.join(table)})" if len(table) <= 12 else "; docs/engines.md lists them"


def _called(name: str) -> str:
    return "tensorrt_llm with backend: pytorch" if name == PATH else name
