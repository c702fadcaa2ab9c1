"""`python -m benchmarks.packing [--half tune|judge] [--json]`: GPUs next to the fewest that any plan takes.

Seeded fleets of six families, 30 to 60 models each, planned as `argosy plan -o json` plans them, next to first-fit,
best-fit and worst-fit (by falling size), one model a GPU, and the optimum that CP-SAT proves (`argosy[packing]`). Each
plan is checked by rules of its own. The seeds are split: what is chosen is chosen on the half `tune`.

mean_over_optimum, worst_over_optimum   over the fleets whose optimum is proven, and of which ours leaves nothing out
at_optimum_share                        of the fleets whose optimum is proven
worst_extra_gpus                        the most GPUs beyond the proven optimum
unplaced_with_a_place                   fleets of which ours leaves something out, though some plan places all
worse_than_first_fit, …                 fleets on which that rule leaves less out, or takes fewer GPUs
plan_10k_cpu_s                          CPU seconds of a plan of 10,000 models of every kind from nothing; `short`: with
                                        GPUs for three quarters of it; `unchanged`: the same again while it runs
over_bound_10k                          its GPUs over a bound by arithmetic; null where something is left out
change_one_cpu_ms                       CPU time of a plan after the last one, with one of these models a little smaller
round_one_change_cpu_ms                 the same for a whole round, whose servers all report
after_churn_over_fresh                  GPUs after a thousand arrivals and departures, over a plan from nothing
gib_per_gpu_freed                       GiB that were moved for each GPU that came free; null where nothing was moved
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.packing import churn, large, results
from benchmarks.packing.comparing import compared, summary
from benchmarks.packing.fleets.families import FAMILIES, FIRST_SEEDS, JUDGE, MOST_SEEDS, TUNE

_CHURN = 1000
_QUICK = {"fleets": 2, "effort": 1.0, "models": 300, "changes": 40}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write. The exit status is 1 where a plan breaks a rule."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.quick:
        vars(options).update(_QUICK)
    if options.effort and find_spec("ortools") is None:
        parser.error("the optimum needs OR-Tools: pip install 'argosy[packing]'; --effort 0 goes without")
    if options.plot is not None and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib, which is not installed: pip install 'argosy[pictures]'")
    result = measured(options)
    text = json.dumps(result, indent=1)
    if options.json is None:
        results.show(result)
    elif str(options.json) == "-":
        print(text)
    else:
        options.json.write_text(text + "\n")
    if options.plot is not None:
        results.draw(result, options.plot)
    return int(result["plans_that_break_a_rule"] > 0)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Return all numbers: those of the fleets, and those of large and of changing fleets unless they are left out."""
    first = FIRST_SEEDS[options.half]
    seeds = [(family, seed) for family in options.families for seed in range(first, first + options.fleets)]
    if options.workers == 1:
        rows = [compared(family, seed, options.effort) for family, seed in seeds]
    else:
        with ProcessPoolExecutor(options.workers) as pool:
            rows = list(pool.map(compared, *zip(*seeds, strict=True), repeat(options.effort)))
    result = summary(rows)
    figures: dict[str, float | None] = {}
    if options.models:
        figures |= large.measured(options.models, first)
    if options.changes:
        figures |= churn.measured(options.changes, first)
    return {**figures, **result}


def _family(text: str) -> str:
    if text not in FAMILIES:
        raise argparse.ArgumentTypeError(f"there is no family {text}; there are {', '.join(FAMILIES)}")
    return text


def _count(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}; found {text!r}")
    return int(text)


def _workers(text: str) -> int:
    return _count(text, 1)


def _effort(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0; found {text!r}")
    return value


def _fleets(text: str) -> int:
    value = _count(text)
    if not 0 < value <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MOST_SEEDS}; found {text!r}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.packing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("families", nargs="*", type=_family, default=tuple(FAMILIES), help="Of these families alone.")
    add("--half", choices=(TUNE, JUDGE), default=JUDGE, help="Which seeds. Default: judge.")
    add("--fleets", type=_fleets, default=15, help="Fleets of each family. Default: 15.")
    add("--effort", type=_effort, default=10.0, help="CP-SAT's deterministic time of each fleet; 0: none. Default: 10.")
    add("--models", type=_count, default=10_000, help="Of the large fleet; 0: without it. Default: 10000.")
    add("--changes", type=_count, default=_CHURN, help="Arrivals and departures; 0: without. Default: 1000.")
    add("--workers", type=_workers, default=2, help="Processes. Default: 2.")
    add("--quick", action="store_true", help="Few fleets, a short search, a small large fleet.")
    add("--json", type=Path, nargs="?", const=Path("-"), help="Write JSON to this file, or print it.")
    add("--plot", type=Path, help="Where a picture goes, .svg or .png; needs matplotlib.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
