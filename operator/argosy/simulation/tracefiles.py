"""Traces as people have them: CSV texts. TraceError names the line and what it should hold.

- `time,model,prompt,output`: a request a line; `time` in seconds or as a date, the others where they are known.
- Azure's LLM inference traces: `TIMESTAMP,ContextTokens,GeneratedTokens`.
- Azure Functions' traces: a function a line, `HashFunction`, `Trigger`, and its invocations in each minute.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from types import MappingProxyType

import numpy as np

from argosy.simulation.traces import Floats, Trace

_NAMES = {"timestamp": "time", "contexttokens": "prompt", "generatedtokens": "output"}
_MINUTE = 60.0
NO_CHOICE: Mapping[str, str] = MappingProxyType({})


class TraceError(ValueError):
    """The text is not a trace; the message names the line and what to do."""


def read_trace(text: str, name: str) -> dict[str, Trace]:
    """Return the requests of a CSV text by model; "" is the model of lines that name none. Raises TraceError."""
    lines = csv.reader(StringIO(text))
    header = [_NAMES.get(item.strip().lower(), item.strip().lower()) for item in next(lines, [])]
    if "hashfunction" in header:
        return {"": invocations(text, name)}
    if "time" not in header:
        raise TraceError(
            f"{name}: line 1: the columns need a time (in seconds, or as 2023-11-16 18:17:03), and may have model, "
            f"prompt and output; found {', '.join(header) or 'nothing'}"
        )
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for number, line in enumerate(lines, 2):
        if line:
            where = f"{name}: line {number}"
            model, row = _request(dict(zip(header, line, strict=False)), where)
            rows.setdefault(model, []).append(row)
    if not rows:
        raise TraceError(f"{name}: holds no request; write one a line, such as 0.5 under time")
    first = min(row[0] for item in rows.values() for row in item)
    last = max(row[0] for item in rows.values() for row in item)
    return {model: _trace(model or name, item, first, last) for model, item in rows.items()}


def _request(line: Mapping[str, str], where: str) -> tuple[str, tuple[float, float, float]]:
    sizes = [_number(line[item], where, item) if line.get(item) else 1.0 for item in ("prompt", "output")]
    return line.get("model", "").strip(), (_seconds(line.get("time", ""), where), sizes[0], sizes[1])


def _seconds(text: str, where: str) -> float:
    try:
        # Azure's have seven digits after the second, where Python reads six.
        date = datetime.fromisoformat(text.strip()[:26]) if "-" in text.strip()[1:] and ":" in text else None
    except ValueError as error:
        raise TraceError(f"{where}: time {text!r} is no date: {error}") from None
    if date is None:
        return _number(text, where, "time")
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _number(text: str, where: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < 1e15:
        raise TraceError(f"{where}: {column} must be a number of at least 0; found {text!r}")
    return value


def _trace(name: str, rows: Sequence[tuple[float, float, float]], first: float, last: float) -> Trace:
    times, prompts, outputs = np.array(sorted(rows)).T
    return Trace(name, max(1.0, last - first), times - first, prompts, outputs)


def invocations(text: str, name: str, chosen: Mapping[str, str] = NO_CHOICE, times: int = 1, seed: int = 7) -> Trace:
    """Return arrivals drawn within each minute from Azure Functions' counts, `times` as many. Only functions
    count whose columns, such as `Trigger`, begin with the chosen texts. Raises TraceError.
    """
    counts: Floats | None = None
    for number, line in enumerate(csv.DictReader(StringIO(text)), 2):
        if not all((line.get(column) or "").startswith(text) for column, text in chosen.items()):
            continue
        row = np.array(list(_minutes(line, f"{name}: line {number}")))
        if counts is not None and len(row) != len(counts):
            raise TraceError(f"{name}: line {number}: has {len(row)} minutes, those before have {len(counts)}")
        counts = row if counts is None else counts + row
    if counts is None or not len(counts):
        raise TraceError(f"{name}: holds no function with minutes as its columns")
    random = np.random.default_rng(seed)
    begins = np.repeat(np.arange(len(counts)) * _MINUTE, times * counts.astype(int))
    return Trace(name, len(counts) * _MINUTE, np.sort(begins + random.random(len(begins)) * _MINUTE))


def _minutes(line: Mapping[str, str | None], where: str) -> Iterator[float]:
    for column, value in line.items():
        if column and column.isdigit():
            yield _number(value or "", where, f"minute {column}")
