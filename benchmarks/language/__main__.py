"""The command line: start what is compared, measure in alternation, print."""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import benchmarks.language
from benchmarks.language import front_end
from benchmarks.language.checkpoints import checkpoint
from benchmarks.language.environment import NoEngineError
from benchmarks.language.ours import NAME, argosy
from benchmarks.language.systems import engine_alone, vllm_serve
from rich.console import Console
from rich.table import Table

from argosy.bench.load.counting import tokenizer_counter
from argosy.bench.prompts import Vocabulary, samples

_LONGEST = 1024
_MOST = 64


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 where there is no engine to measure."""
    options = _parser().parse_args(argv)
    try:
        figures = asyncio.run(measure(options))
    except NoEngineError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        Console().print(_table(figures))
    return 0


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all parts."""
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="argosy-language-") as scratch:
        folder = Path(scratch)
        checkpoint(folder / "llama", options.hidden, options.layers, _LONGEST)
        count = tokenizer_counter(folder / "llama")
        words = Vocabulary.of([count(text) for text in samples()])
        arguments = engine_arguments(folder / "llama")
        async with AsyncExitStack() as stack:
            systems = []
            for name, starting in (
                ("the engine alone", engine_alone(arguments, folder)),
                ("Argosy", argosy(arguments, folder)),
                ("vllm serve", vllm_serve(arguments, folder)),
            ):
                progress.print(f"starting {name}", markup=False)
                systems.append(await stack.enter_async_context(starting))
            plan = front_end.Plan(tuple(options.concurrencies), options.repetitions, options.requests)
            measured = []
            async for one in front_end.measure(systems, words, plan):
                progress.print(one, markup=False)
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
        table.add_row(name, f"{value:.3f}")
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language", description=benchmarks.language.__doc__)
    add = parser.add_argument
    add("--json", action="store_true", help="print JSON")
    add("--concurrencies", nargs="+", type=int, default=(1, 8, 32))
    add("--repetitions", type=int, default=6)
    add("--requests", type=int, default=32, help="measured requests of a trial, at least")
    add("--hidden", type=int, default=256, help="width of the model")
    add("--layers", type=int, default=2, help="layers of the model")
    return parser


if __name__ == "__main__":
    sys.exit(main())
