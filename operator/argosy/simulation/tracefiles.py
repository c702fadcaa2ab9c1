"""Traces as people have them: CSV texts. TraceError names the line and what it should hold.

- `time,model,prompt,output`: a request a line; `time` in seconds or as a date, the others where they are known.
- Azure's LLM inference traces: `TIMESTAMP,ContextTokens,GeneratedTokens`.
- Azure Functions' traces: a function a line, `HashFunction`, `Trigger`, and its invocations in each minute.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from argosy.simulation.traces import Floats, Trace

_NAMES = {"timestamp": "time", "contexttokens": "prompt", "generatedtokens": "output"}
_MINUTE = 60.0
_MAX_DAYS = 31
_MAX_S = _MAX_DAYS * 86400.0
"""The longest trace: decisions are made every few seconds of it, so that a simulation of a month takes minutes."""
_TOO_LONG = f"a trace may be {_MAX_S:,.0f} s long ({_MAX_DAYS} days)"
_MAX_REQUESTS = 20_000_000
"""The most requests that counts may stand for: each is simulated."""
NO_CHOICE: Mapping[str, str] = MappingProxyType({})


class TraceError(ValueError):
    """The text is not a trace; the message names the line and what to do."""


class _Request(NamedTuple):
    time: float
    prompt: float
    output: float
    line: int


def read_trace(text: str, name: str) -> dict[str, Trace]:
    """Return the requests of a CSV text by model; the model is "" if no line names one. Raises TraceError."""
    lines = _lines(text, name)
    _, columns = next(lines, (1, []))
    header = [_NAMES.get(item.strip().lower(), item.strip().lower()) for item in columns]
    if "hashfunction" in header:
        return {"": invocations(text, name)}
    if "time" not in header:
        raise TraceError(
            f"{name}: line 1: the columns need a time (in seconds, or as 2023-11-16 18:17:03), and may have model, "
            f"prompt and output; found {', '.join(header) or 'nothing'}"
        )
    requests: dict[str, list[_Request]] = {}
    for number, line in lines:
        model, request = _request(dict(zip(header, line, strict=False)), name, number)
        requests.setdefault(model, []).append(request)
    if not requests:
        raise TraceError(f"{name}: holds no request; write one a line, such as 0.5 under time")
    if "" in requests and len(requests) > 1:
        raise TraceError(f"{name}: line {requests[''][0].line}: names no model, as other lines do; name one on each")
    begins, seconds = _span(requests, name)
    return {model: _trace(model or name, item, begins, seconds) for model, item in requests.items()}


def _lines(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each line that is not empty, with its number. Raises TraceError."""
    reader = csv.reader(StringIO(text))
    try:
        for line in reader:
            if line:
                yield reader.line_num, line
    except csv.Error as error:
        raise TraceError(f"{name}: line {reader.line_num}: is no line of a CSV: {error}") from None


def _request(line: Mapping[str, str], name: str, number: int) -> tuple[str, _Request]:
    where = f"{name}: line {number}"
    prompt, output = (_number(line[item], where, item) if line.get(item) else 1.0 for item in ("prompt", "output"))
    return line.get("model", "").strip(), _Request(_seconds(line.get("time", ""), where), prompt, output, number)


def _seconds(text: str, where: str) -> float:
    try:
        date = datetime.fromisoformat(text.strip()) if "-" in text.strip()[1:] and ":" in text else None
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


def _span(requests: Mapping[str, Sequence[_Request]], name: str) -> tuple[float, float]:
    """Return the time of the first request, and the seconds from it to the last one. Raises TraceError."""
    first = min(request for item in requests.values() for request in item)
    last = max(request for item in requests.values() for request in item)
    seconds = last.time - first.time
    if seconds > _MAX_S:
        raise TraceError(
            f"{name}: line {last.line}: time is {seconds:,.0f} s after the first, which line {first.line} has; "
            f"{_TOO_LONG}. Is time in seconds?"
        )
    return first.time, max(1.0, seconds)


def _trace(name: str, requests: Sequence[_Request], begins: float, seconds: float) -> Trace:
    times, prompts, outputs, _ = np.array(sorted(requests)).T
    return Trace(name, seconds, times - begins, prompts, outputs)


def invocations(text: str, name: str, chosen: Mapping[str, str] = NO_CHOICE, times: int = 1, seed: int = 7) -> Trace:
    """Return arrivals drawn within each minute from Azure Functions' counts, `times` as many. Only functions
    count whose columns, such as `Trigger`, begin with the chosen texts. Raises TraceError.
    """
    lines = _lines(text, name)
    _, header = next(lines, (1, []))
    counts: Floats | None = None
    for number, values in lines:
        line = dict(zip_longest(header, values, fillvalue=""))
        if all(line.get(column, "").startswith(text) for column, text in chosen.items()):
            row = np.array(list(_minutes(line, f"{name}: line {number}")))
            counts = row if counts is None else counts + row
            _check_size(counts * times, f"{name}: line {number}")
    if counts is None or not len(counts):
        raise TraceError(f"{name}: holds no function with minutes as its columns")
    random = np.random.default_rng(seed)
    begins = np.repeat(np.arange(len(counts)) * _MINUTE, times * counts.astype(int))
    if not len(begins):
        raise TraceError(f"{name}: holds no request: the counts of all minutes are 0")
    return Trace(name, len(counts) * _MINUTE, np.sort(begins + random.random(len(begins)) * _MINUTE))


def _minutes(line: Mapping[str, str], where: str) -> Iterator[float]:
    for column, value in line.items():
        if column.isdigit():
            yield _number(value, where, f"minute {column}")


def _check_size(counts: Floats, where: str) -> None:
    requests, seconds = float(counts.sum()), len(counts) * _MINUTE
    if requests > _MAX_REQUESTS:
        raise TraceError(f"{where}: with it there are {requests:,.0f} requests; a trace may have {_MAX_REQUESTS:,}")
    if seconds > _MAX_S:
        raise TraceError(f"{where}: its {len(counts):,} minutes are {seconds:,.0f} s; {_TOO_LONG}")
