"""`python -m benchmarks.scrapes [--json FILE]`: what measuring a server of a thousand models costs.

CPU time throughout, and the ways in alternating rounds. Of the server: making the text at once, and in
parts as it does. `longest`: how long its loop does nothing else. Of the operator: one MB of a pool's text, by
prometheus-client's parser and by ours, and what is done with it until there are signals.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.numbers import report

from .reading import reading_cost
from .serving import scrape_costs

SERVERS = 10
"""Of the pool that the operator reads, with the models shared among them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = _parser().parse_args(argv)
    figures = measured(options.models, options.rounds)
    report(figures, options.json)
    return 0


def measured(models: int, rounds: int) -> dict[str, float]:
    """Return all numbers by name."""
    figures: dict[str, float] = {"models": models}
    for name, active in (("at_rest", 0.0), ("active", 1.0)):
        costs = scrape_costs(models, active, rounds)
        once, parts = costs["at_once"], costs["in_parts"]
        figures |= {
            f"{name}_at_once_cpu_ms": once.cpu_ms,
            f"{name}_at_once_longest_ms": once.longest_ms,
            f"{name}_cpu_ms": parts.cpu_ms,
            f"{name}_longest_ms": parts.longest_ms,
            f"{name}_cpu_change": parts.cpu_ms / once.cpu_ms,
            f"{name}_longest_change": parts.longest_ms / once.longest_ms,
        }
    reading = reading_cost(SERVERS, models // SERVERS, max(1, rounds // 2))
    return figures | {
        "pool_mb": reading.megabytes,
        "their_parser_ms_per_mb": reading.their_parser_ms,
        "parser_ms_per_mb": reading.parsing_ms,
        "signals_ms_per_mb": reading.understanding_ms,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrapes", description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="Models of a server. Default: 1000.")
    parser.add_argument("--rounds", type=int, default=7, help="Rounds, of which the median counts. Default: 7.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
