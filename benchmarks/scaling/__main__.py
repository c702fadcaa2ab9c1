"""`python -m benchmarks.scaling [--json] [--tune [NAMES]] [TRACE …]`: who holds the latency, with how many GPU-hours.

Argosy's own decisions run with one and the same policy on every trace: its defaults, and what a resource says (the SLO,
the bounds). HPA, KEDA and KPA run as they come. All four are also tuned for each trace over a grid of settings; those
points are kept in `tuned.json`, since they take minutes; `--tune` makes them anew.

Keys: by trace `ours`, and for each baseline the tuned one (the cheapest setting that holds the 99th percentile on that
trace, or else the one that is late least often), the one that is late least often at our cost, and the default.
`clairvoyant` is no contender but a plan by who knows every request beforehand: the cheapest that holds the 99th
percentile, and beside each default the one that is late least often at its cost. `worst_ratio_violations`: the most,
over traces and baselines that have a setting which costs no more than ours, of our violations over its, the fewest.
`mean_gpu_hours_saved`: over traces and baselines, beside the cheapest setting that is late no more often than ours.
Both are of ours by default. Traces that are drawn are drawn several times; what is told of them is the mean. `met`: by
trace and baseline, whether the target holds with some setting of ours beside the tuned one, with some setting of ours
beside the default (whoever lets many be late is held beside ours that may be late, too), with both by default, and with
ours by default beside the tuned one.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.own import Own

from .baselines import NAMES
from .cases import Case, cases, constant
from .clairvoyant import CLAIRVOYANT
from .comparing import (
    Point,
    Settings,
    as_cheap,
    as_json,
    by_default,
    frontier,
    meets,
    our_frontier,
    ours,
    ratio,
    run,
    saved,
    tuned,
)
from .deciding import seconds_taken
from .policies import lenient, policies

TUNED = Path(__file__).parent / "tuned.json"
OURS, LENIENT = "ours", "ours_lenient"
GRIDS: Mapping[str, Settings] = {OURS: policies, LENIENT: lenient}
MODELS = 10_000
SETTLED_S = 1200.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    options = _parser().parse_args(argv)
    chosen = {name: draws for name, draws in cases().items() if not options.traces or name in options.traces}
    if options.tune:
        _tune(chosen, options.tune.split(","), options.workers)
    result = compared(chosen, _kept())
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        Console(width=150).print(_table(result))
        print({name: value for name, value in result.items() if name not in ("traces", "met")})
    return 0


def compared(chosen: Mapping[str, Sequence[Case]], fronts: dict[str, dict[str, list[Point]]]) -> dict[str, Any]:
    """Ours beside all that baselines reach on each trace."""
    rows, found, met = {}, {}, {}
    for trace, draws in chosen.items():
        point = found[trace] = ours(draws)
        default, front = by_default(draws), fronts[trace]
        rows[trace] = _row(front, point, default)
        met[trace] = {name: _met(front, name, point, default[name]) for name in NAMES}
    taken = seconds_taken(MODELS)
    pairs = [(fronts[trace][name], point) for trace, point in found.items() for name in NAMES]
    return {
        "traces": rows,
        "worst_ratio_violations": max((each for pair in pairs if (each := ratio(*pair)) is not None), default=0.0),
        "mean_gpu_hours_saved": mean(saved(*pair) for pair in pairs) if pairs else 0.0,
        "met": met,
        "changes_under_constant_load": settled_changes(),
        "decide_10000_models_s": taken.settled,
        "decide_10000_models_first_s": taken.first,
    }


def _row(front: Mapping[str, list[Point]], point: Point, default: Mapping[str, Point]) -> dict[str, Any]:
    row = {
        OURS: as_json(point) | {"tuned": as_json(tuned(front[OURS]))},
        CLAIRVOYANT: as_json(tuned(front[CLAIRVOYANT])),
    }
    for name in NAMES:
        row[name] = as_json(tuned(front[name])) | {
            "at_our_cost": as_json(as_cheap(front[name], point)),
            "default": as_json(default[name]),
            "clairvoyant_at_default_cost": as_json(as_cheap(front[CLAIRVOYANT], default[name])),
        }
    return row


def _met(front: Mapping[str, list[Point]], name: str, point: Point, default: Point) -> dict[str, bool]:
    theirs = tuned(front[name])
    return {
        "tuned_beside_tuned": any(meets(theirs, each) for each in front[OURS]),
        "tuned_beside_default": any(meets(default, each) for each in (*front[OURS], *front[LENIENT])),
        "default_beside_default": meets(default, point),
        "default_beside_tuned": meets(theirs, point),
    }


def settled_changes() -> int:
    """Changes under loads that stay as they are, once the queue of the start and the windows after it are over."""
    outcomes = [run(case.workload, _own(case)) for case in constant()]
    return sum(change.at > SETTLED_S for outcome in outcomes for change in outcome.changes)


def _own(case: Case) -> Autoscaling:
    return lambda: Own(case.policy)


def _tune(chosen: Mapping[str, Sequence[Case]], names: Sequence[str], workers: int) -> None:
    kept = json.loads(TUNED.read_text()) if TUNED.exists() else {}
    with ProcessPoolExecutor(workers) as pool:
        pairs = [(trace, name) for trace in chosen for name in names]
        for (trace, name), points in zip(pairs, pool.map(_front, pairs), strict=True):
            kept.setdefault(trace, {})[name] = [as_json(point) for point in points]
            print(trace, name, len(points), file=sys.stderr, flush=True)
            TUNED.write_text(json.dumps(kept, indent=1) + "\n")


def _front(pair: tuple[str, str]) -> list[Point]:
    trace, name = pair
    draws = cases()[trace]
    if name in GRIDS:
        return our_frontier(draws, GRIDS[name])
    return frontier(draws, name)


def _kept() -> dict[str, dict[str, list[Point]]]:
    found = json.loads(TUNED.read_text())
    return {
        case: {name: [Point(**each) for each in points] for name, points in by.items()} for case, by in found.items()
    }


def _table(result: dict[str, Any]) -> Table:
    table = Table("trace", "", "late", "GPU-hours", "changes", "late at our cost", "by default", "target", "settings")
    for trace, row in result["traces"].items():
        mine, own = row[OURS], row[OURS]["tuned"]
        default = f"{mine['violations']:.2%} for {mine['gpu_hours']:.2f}"
        table.add_row(trace, OURS, f"{own['violations']:.2%}", f"{own['gpu_hours']:.2f}", str(own["changes"]), "",
                      default, "", own["settings"])  # fmt: skip
        for name in NAMES:
            each, cheap, default = row[name], row[name]["at_our_cost"], row[name]["default"]
            table.add_row(
                "",
                name,
                f"{each['violations']:.2%}",
                f"{each['gpu_hours']:.2f}",
                str(each["changes"]),
                f"{cheap['violations']:.2%} for {cheap['gpu_hours']:.2f}",
                f"{default['violations']:.2%} for {default['gpu_hours']:.2f}",
                " / ".join("met" if each else "missed" for each in result["met"][trace][name].values()),
                each["settings"],
            )
        each = row[CLAIRVOYANT]
        late, cost, changes = f"{each['violations']:.2%}", f"{each['gpu_hours']:.2f}", str(each["changes"])
        table.add_row("", CLAIRVOYANT, late, cost, changes, "", "", "", each["settings"])
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("traces", nargs="*", help="Of these traces alone.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    every = ",".join((*GRIDS, *NAMES, CLAIRVOYANT))
    words = f"Try every setting of these grids first. Default: {every}."
    parser.add_argument("--tune", nargs="?", const=every, metavar="NAMES", help=words)
    parser.add_argument("--workers", type=int, default=2, help="Processes that tune. Default: 2.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
