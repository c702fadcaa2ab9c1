"""`python -m benchmarks.scaling [--half tune|judge] [--json] [TRACE …]`: late requests and GPU-hours, side by side.

Argosy's own decisions, with one policy on every trace (its defaults, and what a resource says: the SLO and the bounds),
next to HPA, KEDA and KPA as they come. The traces are split: rules and constants are chosen on the half `tune`; the
half `judge` is only ever used to judge. Each trace is drawn three times, with replicas that take 30, 60 and
120 s to start. `--trace FILE` runs any CSV of arrivals instead.

Keys: `traces` has late requests (a share), GPU-hours and changes of each; `dominated_by` the pairs in which ours is
worse in both; `mean_gpu_hours_ratio` and `mean_late_ratio` are ours over theirs, geometric means over all pairs;
`changes_under_constant_load` counts changes after twenty minutes in 48 runs of an hour.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from argosy.cli.simulation.traces import read_traces
from argosy.simulation.autoscalers.own import Own

from .cases import CURVES, JUDGE, TUNE, Case, case_of, cases, constant
from .comparing import OURS, Point, points, run, summary
from .deciding import seconds_taken

MODELS = 10_000
SETTLED_S = 1200.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = _parser()
    options = parser.parse_args(argv)
    every, errors = _of_files(options.trace, options.model) if options.trace else (cases(options.half), [])
    if not errors:
        errors = [
            f"there is no trace {name}; there are {', '.join(every)}" for name in options.traces if name not in every
        ]
    if errors:
        parser.error("\n".join(errors))
    chosen = {name: draws for name, draws in every.items() if not options.traces or name in options.traces}
    with ProcessPoolExecutor(options.workers) as pool:
        results = dict(zip(chosen, pool.map(points, chosen.values()), strict=True))
        result = summary(results)
        if not options.trace and not options.traces:
            result["changes_under_constant_load"] = sum(pool.map(_settled_changes, constant()))
            taken = seconds_taken(MODELS)
            result |= {"decide_10000_models_s": taken.settled, "decide_10000_models_first_s": taken.first}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        Console(width=130).print(_table(results))
        print({name: value for name, value in result.items() if name != "traces"})
    return 0


def _of_files(files: Sequence[Path], model: str) -> tuple[dict[str, tuple[Case, ...]], list[str]]:
    """Return a case of each trace by the trace's name, and the errors of the files."""
    traces, errors = read_traces(files)
    return {trace.name: (case_of(trace, model),) for trace in traces.values()}, errors


def _settled_changes(case: Case) -> int:
    """Return the changes of a load that stays as it is, once the queue of the start is over, and windows after it."""
    outcome = run(case.workload, lambda: Own(case.policy))
    return sum(change.at > SETTLED_S for change in outcome.changes)


def _table(results: Mapping[str, Mapping[str, Point]]) -> Table:
    """Return late requests and GPU-hours of each, and of ours the changes."""
    names = list(next(iter(results.values())))
    table = Table("trace", *names, "changes of ours", title="late requests, GPU-hours")
    for trace, row in results.items():
        cells = [f"{row[name].violations:.2%}, {row[name].gpu_hours:.2f}" for name in names]
        table.add_row(trace, *cells, str(row[OURS].changes))
    return table


def _workers(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0; found {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("traces", nargs="*", help="Of these traces alone.")
    parser.add_argument("--half", choices=(TUNE, JUDGE), default=JUDGE, help="Which traces. Default: judge.")
    words = "A CSV of arrivals in place of the half's traces."
    parser.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE", help=words)
    models: dict[str, Any] = json.loads(CURVES.read_text())["models"]
    parser.add_argument("--model", choices=tuple(models), default="embed", help="What serves it. Default: embed.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.add_argument("--workers", type=_workers, default=2, help="Processes. Default: 2.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
