"""An engine's options checked against the table of its builder, and against one another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from argosy_common.wording import did_you_mean

from .aotinductor import AOTINDUCTOR
from .onnxruntime import ONNXRUNTIME, onnxruntime_contradictions
from .option import Fault, Option, choice
from .precisions import PRECISIONS, Precision
from .requested import DeclaredSizes, RequestedEngine, fault
from .tensorrt import TENSORRT, tensorrt_contradictions
from .tensorrt_llm import (
    ENGINE,
    PYTORCH,
    QUANTIZATION,
    RENAMED,
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
ENGINE_LESS = "tensorrt_llm pytorch"
TABLES: Mapping[str, Mapping[str, Option]] = {
    "tensorrt_llm": {"backend": BACKEND, **ENGINE, **QUANTIZATION, **SERVING},
    ENGINE_LESS: {"backend": BACKEND, **PYTORCH, **QUANTIZATION},
    "tensorrt": TENSORRT,
    "onnxruntime": ONNXRUNTIME,
    "aotinductor": AOTINDUCTOR,
}
"""The options by builder; TensorRT-LLM's engine-less path has a table of its own."""

_RULES: Mapping[str, Callable[[RequestedEngine], Iterator[Fault]]] = {
    "tensorrt_llm": contradictions,
    ENGINE_LESS: contradictions,
    "tensorrt": tensorrt_contradictions,
    "onnxruntime": onnxruntime_contradictions,
}


def table_of(builder: str, options: Mapping[str, Any]) -> str:
    """Return the name of the table that applies to these options."""
    return ENGINE_LESS if builder == "tensorrt_llm" and options.get("backend") == "pytorch" else builder


def option_faults(builder: str, precision: str | None, options: Mapping[str, Any], calibrated: bool) -> Iterator[Fault]:
    """Yield every error of an engine's options and precision. An empty precision is that of the model."""
    name = table_of(builder, options)
    if precision and precision not in PRECISIONS[name]:
        yield Fault(f"{_title(name)} makes {', '.join(PRECISIONS[name])}, and not {precision}", ("precision",))
        precision = None
    faults = [*value_faults(name, options)]
    yield from faults
    if name in _RULES:
        requested = Precision(precision) if precision else None
        yield from _RULES[name](RequestedEngine(requested, _valid(options, faults), calibrated))


def parallelism_faults(builder: str, options: Mapping[str, Any], sizes: DeclaredSizes) -> Iterator[Fault]:
    """Yield the options that contradict the model's `parallelism` and `maxBatchSize`."""
    if builder == "tensorrt_llm":
        faults = value_faults(table_of(builder, options), options)
        yield from parallel_contradictions(RequestedEngine(options=_valid(options, faults)), sizes)


def value_faults(table: str, options: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the options that the table does not have, and those with a wrong value."""
    for name, value in options.items():
        option = TABLES[table].get(name)
        if option is not None:
            yield from option.faults(value, ("options", name))
        else:
            yield fault(name, _unknown(table, name))


def build_options(builder: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the engine's files depend on.

    A build is requested with these only, so that a change of a serving option builds nothing.
    """
    table = TABLES[table_of(builder, options)]
    return {name: value for name, value in options.items() if name not in table or not table[name].serving}


def _valid(options: Mapping[str, Any], faults: Iterator[Fault] | list[Fault]) -> dict[str, Any]:
    wrong = {error.path[1] for error in faults}
    return {name: value for name, value in options.items() if name not in wrong}


def _unknown(table: str, name: str) -> str:
    if table in ("tensorrt_llm", ENGINE_LESS):
        if name in RENAMED:
            return f"is no option here: {RENAMED[name]}"
        other, backend = (ENGINE_LESS, "pytorch") if table == "tensorrt_llm" else ("tensorrt_llm", "tensorrt")
        if name in TABLES[other]:
            return f"is an option of backend: {backend} alone; leave it out, or set backend"
    near = did_you_mean(name, TABLES[table])
    return f"{_title(table)} has no such option{near if near.startswith(';') else _few(TABLES[table])}"


def _few(table: Mapping[str, Option]) -> str:
    """Return the names of a table where they are few enough to read."""
    return f" (known: {', '.join(table)})" if len(table) <= 12 else "; docs/reference/engine-options.md lists them"


def _title(table: str) -> str:
    return "tensorrt_llm with backend: pytorch" if table == ENGINE_LESS else table
