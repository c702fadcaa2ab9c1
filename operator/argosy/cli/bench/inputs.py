"""The command's arguments as settings, with every error at once."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from argosy.api.values.quantity import parse_duration
from argosy.bench.budgets import NO_BUDGET, Budget, parse_budgets
from argosy.bench.load.client import Target
from argosy.bench.load.counting import tokenizer_errors
from argosy.bench.plan import Level
from argosy.bench.results import Endpoint
from argosy.bench.variants.crossovers import measured_variants

SWEEP = "1,2,4,8,16,32,64"
_MOST_AT_ONCE = 4096
T = TypeVar("T")


class Problems(list[str]):
    """Errors of the input. `read` collects those of a function that raises ValueError."""

    def read(self, option: str, parse: Callable[[], T], default: T) -> T:
        """Return what `parse` returns, or note its error and return the default."""
        try:
            return parse()
        except ValueError as error:
            self.append(f"{option}: {error}")
            return default


def read_targets(
    texts: Sequence[str], models: Sequence[str], key_file: Path | None, problems: Problems
) -> list[Target]:
    """Return the endpoints of texts such as "vllm=http://localhost:8000"."""
    key = ""
    if key_file is not None:
        try:
            key = key_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"--api-key-file {key_file}: {error}")
    targets = [problems.read("ENDPOINT", partial(_target, text, key), Target("", "")) for text in texts]
    names = [target.name for target in targets]
    problems += [
        f"ENDPOINT: two are named {name}; write NAME=URL with names that differ"
        for name in sorted({name for name in names if name and names.count(name) > 1})
    ]
    return _with_models(targets, models, problems)


def _target(text: str, key: str) -> Target:
    name, separator, url = text.partition("=")
    if not separator or "/" in name:
        name, url = "", text
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is no endpoint: write http://HOST:PORT or NAME=http://HOST:PORT")
    if parts.username or parts.query or parts.fragment:
        raise ValueError(f"{text!r}: write the URL without user, query and fragment; --api-key-file has the key")
    base = url.rstrip("/").removesuffix("/v1")
    return Target(name or parts.netloc, base, key=key)


def _with_models(targets: Sequence[Target], models: Sequence[str], problems: Problems) -> list[Target]:
    """Return the targets with the models of texts such as "llama" for all, or "vllm=llama" for one endpoint."""
    names = {target.name for target in targets}
    of_all, by_name = "", dict[str, str]()
    for text in models:
        name, separator, model = text.partition("=")
        if separator and name in names:
            by_name[name] = model
        elif of_all:
            problems.append(f"--model {text}: --model {of_all} is for all endpoints already; write ENDPOINT=MODEL")
        else:
            of_all = text
    return [Target(target.name, target.url, by_name.get(target.name, of_all), target.key) for target in targets]


def read_levels(concurrencies: str | None, rates: str | None, problems: Problems) -> list[Level]:
    """Return the levels: the sweep where neither concurrencies nor rates are requested."""
    if concurrencies is None and rates is None:
        concurrencies = SWEEP
    none: list[float] = []
    closed = problems.read("--concurrency", lambda: _numbers(concurrencies, _integer, "1,8,32"), none)
    opened = problems.read("--rate", lambda: _numbers(rates, _positive, "0.5,2,8"), none)
    return [Level(concurrency=int(number)) for number in closed] + [Level(rate=number) for number in opened]


def _numbers(text: str | None, parse: Callable[[str], float], example: str) -> list[float]:
    try:
        return sorted({parse(part) for part in text.split(",")}) if text is not None else []
    except ValueError as error:
        raise ValueError(f"{text!r} is no list of numbers above 0, such as {example}: {error}") from None


def _integer(text: str) -> float:
    number = int(text)
    if not 1 <= number <= _MOST_AT_ONCE:
        raise ValueError(f"{number} is not from 1 to {_MOST_AT_ONCE}")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(f"{number:g} is not above 0")
    return number


def read_budget(texts: Sequence[str], problems: Problems) -> Budget:
    """Return the budget of goodput."""
    return problems.read("--budget", lambda: parse_budgets(texts), NO_BUDGET)


def read_timeout(text: str, problems: Problems) -> float:
    """Return the seconds that a request may take."""
    seconds = problems.read("--timeout", lambda: parse_duration(text) / 1000, 1.0)
    if seconds <= 0:
        problems.append("--timeout: must be more than 0s")
    return seconds


def check_tokenizer(folder: Path | None, problems: Problems) -> None:
    """Note why the tokenizer's folder cannot be used."""
    problems += [] if folder is None else tokenizer_errors(folder)


def check_patch(targets: Sequence[Target], hardware: str | None, problems: Problems) -> None:
    """Note what a patch of a model's variants lacks, before anything is measured."""
    if not hardware:
        problems.append("--hardware: a patch says on what it was measured, such as '1x H100'")
    endpoints = [Endpoint(target.name, target.url, target.model) for target in targets]
    problems.read("--output patch", lambda: measured_variants(endpoints), None)
