"""`python -m benchmarks.rollout [--runs N] [--json]`: how surely and how soon rollouts tell versions apart.

Argosy's own state machine and analysis, by their defaults and with steps of 5, 25 and 50 percent, read two simulated
versions each second: with a queue and real batching each, at low, middle and full load.

Keys: `requests_to_convict_over_sprt` is the candidate's requests until a version with 1 % errors is taken back, over
those that Wald's test needs on average if it looks after each request; `false_rollbacks_per_1000`: the same version
against itself; `missed_bad_per_1000`: versions with 1 % errors that are promoted; `missed_slow_per_1000`: versions
three times slower. Each is at the load where it is worst; `cells` has all of them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .proving import measured

CHUNK = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    options = _parser().parse_args(argv)
    with ProcessPoolExecutor(options.workers) as pool:
        result = measured(options.runs, partial(pool.map, chunksize=CHUNK))
    if options.json:
        print(json.dumps(result, indent=1))
        return 0
    for name, value in result.items():
        if name != "cells":
            print(f"{name}: {value}")
    for name, cell in result["cells"].items():
        print(f"{name}: {cell}")
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be an integer above 0; found {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollout", description=__doc__)
    words = "Rollouts of each candidate at each load. Default: 1000."
    parser.add_argument("--runs", type=_positive, default=1000, help=words)
    parser.add_argument("--workers", type=_positive, default=2, help="Processes. Default: 2.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
