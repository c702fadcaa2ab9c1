"""The command line: start what is compared, measure in alternation, print."""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.language
from benchmarks.language import front_end
from benchmarks.language.checkpoints import HEAD, checkpoint
from benchmarks.language.environment import NoEngineError
from benchmarks.language.front_end import MismatchError, Plan
from benchmarks.language.ours import NAME, argosy
from benchmarks.language.regimes import NoCrossoverError, regimes
from benchmarks.language.systems import engine_alone, vllm_serve
from benchmarks.language.waking import waking
from rich.console import Console
from rich.table import Table

from argosy.bench.load.counting import tokenizer_counter
from argosy.bench.prompts import Vocabulary, samples

PARTS = ("front-end", "regimes", "waking")
_FAILURES = (MismatchError, NoCrossoverError, RuntimeError, TimeoutError)
_LONGEST = 1024
_MOST = 64


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 where there is no engine to measure, or a part could not be measured."""
    options = _parser().parse_args(argv)
    try:
        figures, is_complete = asyncio.run(measure(options))
    except NoEngineError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        Console().print(_table(figures))
    return 0 if is_complete else 1


async def measure(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Return the figures of the requested parts, and whether all of them could be measured.

    A part that could not is reported on standard error; the others are measured all the same.
    """
    progress = Console(stderr=True)

    def note(what: object) -> None:
        progress.print(what, markup=False)

    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="argosy-language-") as scratch:
        folder = Path(scratch)
        checkpoint(folder / "llama", options.hidden, options.layers, _LONGEST)
        count = tokenizer_counter(folder / "llama")
        words = Vocabulary.of([count(text) for text in samples()])
        arguments = engine_arguments(folder / "llama")
        plan = Plan(tuple(options.concurrencies), options.repetitions, options.requests)
        ramp = replace(plan, repetitions=options.ramps, requests=max(1, plan.requests // 2), output_tokens=32)
        parts: dict[str, Callable[[], Coroutine[Any, Any, dict[str, Any]]]] = {
            "front-end": lambda: compare(arguments, words, plan, folder, note),
            "regimes": lambda: regimes(arguments, words, ramp, folder, note),
            "waking": lambda: waking(arguments, words, options.wakes, folder, note),
        }
        is_complete = True
        for name in (part for part in PARTS if part in options.parts):
            try:
                figures |= await parts[name]()
            except _FAILURES as error:
                is_complete = False
                note(f"{name}: not measured: {type(error).__name__}: {error}")
    return figures, is_complete


async def compare(
    arguments: dict[str, Any], words: Vocabulary, plan: Plan, folder: Path, note: Callable[[object], None]
) -> dict[str, Any]:
    """Return the figures of the engine alone, Argosy and `vllm serve`, which run at the same time and take turns."""
    async with AsyncExitStack() as stack:
        systems = []
        for name, starting in (
            ("the engine alone", engine_alone(arguments, folder)),
            ("Argosy", argosy(arguments, folder)),
            ("vllm serve", vllm_serve(arguments, folder)),
        ):
            note(f"starting {name}")
            systems.append(await stack.enter_async_context(starting))
        measured = []
        async for one in front_end.measure(systems, words, plan):
            note(one)
            measured.append(one)
    return front_end.figures(measured, NAME, "engine", "vllm serve")


def engine_arguments(model: Path) -> dict[str, Any]:
    """Return the arguments of every engine that is compared."""
    return {
        "model": str(model), "dtype": "float32", "max_model_len": _LONGEST, "max_num_seqs": _MOST, "enforce_eager": True
    }  # fmt: skip


def _table(figures: dict[str, Any]) -> Table:
    table = Table("what", "measured")
    for name, value in figures.items():
        table.add_row(name, ", ".join(f"{number:.3f}" for number in (value if isinstance(value, list) else [value])))
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language", description=benchmarks.language.__doc__)
    add = parser.add_argument
    add("--json", action="store_true", help="print JSON")
    add("--concurrencies", nargs="+", type=_count, default=(1, 8, 32), help=f"requests in flight, up to {_MOST}")
    add("--repetitions", type=_count, default=6)
    add("--requests", type=_count, default=32, help="measured requests of a trial, at least")
    add("--parts", nargs="+", choices=PARTS, default=PARTS)
    add("--ramps", type=_count, default=2, help="repetitions of each step of the ramp")
    add("--wakes", type=_count, default=3, help="rounds of sleeping and waking")
    add("--hidden", type=_width, default=256, help=f"width of the model, a multiple of {HEAD}")
    add("--layers", type=_count, default=2, help="layers of the model")
    return parser


def _count(text: str) -> int:
    """Return a number from 1 to the largest batch of the engines. Raises ArgumentTypeError."""
    if not (text.isdecimal() and 1 <= int(text) <= _MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST}")
    return int(text)


def _width(text: str) -> int:
    """Return a width that consists of whole heads. Raises ArgumentTypeError."""
    if not (text.isdecimal() and int(text) >= HEAD and int(text) % HEAD == 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no multiple of {HEAD}, the width of a head")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
