"""`python -m benchmarks.rollout [--parts proving mirroring releases drains] [--json]`: how surely and how soon rollouts
tell versions apart, what mirroring costs, and what clients meet of bad versions, and of servers that end.

`proving`: Argosy's own state machine and analysis, by their defaults and with steps of 5, 25 and 50 percent, read two
simulated versions each second: with a queue and real batching each, at low, middle and full load.

Keys: `requests_to_convict_over_sprt` is the candidate's requests until a version with 1 % errors is taken back, over
those that Wald's test needs on average if it looks after each request; `false_rollbacks_per_1000`: the same version
against itself; `missed_bad_per_1000`: versions with 1 % errors that are promoted; `missed_slow_per_1000`: versions
three times slower. Each is at the load where it is worst; `cells` has all of them.

`mirroring`: the server's own dispatchers and mirror in virtual time, with both versions on one device that executes one
batch at a time, and 10 % of the requests mirrored. `mirroring_mean_over_without` and `mirroring_p99_over_without` are
the latencies of the stable version's clients over those of the same requests without mirroring, at 80 % of what the
device can answer; `mirrored_share` is how many of the chosen requests are mirrored, and `shadow_verdict_s` the seconds
until a candidate without failures is cleared. `mirroring_cells` has other loads, too.

`releases`: `argosy up` releases good versions under an open-loop load (`failed_requests`, and `late_requests`, which
reach the former version half a second after the end), and versions that fail half of their requests. `back_p99_s` is
the time from the verdict in the status to the last request that such a version gets, and `bad_requests_share` the
largest share of the requests that one got, next to that of its step.

`drains`: servers and their agents, with the arguments that the operator renders, end under load as Pods do: by a
SIGTERM to every container, while their Service still sends new connections for some seconds. In `scale_down` their
models are unloaded first. `failed_requests_of_drains` and `cut_streams` count what clients met that never retry.
`drain_scenarios` has both for each scenario, in what words they failed, and the seconds that the longest end took.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from . import mirroring, proving, releasing
from .draining import scenarios

CHUNK = 10
TABLES = ("cells", "mirroring_cells", "drain_scenarios")
"""Results with a line for each of their parts."""
PARTS = ("proving", "mirroring", "releases", "drains")


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    options = _parser().parse_args(argv)
    result: dict[str, Any] = {}
    if "proving" in options.parts:
        with ProcessPoolExecutor(options.workers) as pool:
            result |= proving.measured(options.runs, partial(pool.map, chunksize=CHUNK))
    if "mirroring" in options.parts:
        result |= asyncio.run(mirroring.measured(options.seconds))
    if "releases" in options.parts:
        result |= asyncio.run(releasing.measured(options.bumps, options.bad_bumps))
    if "drains" in options.parts:
        result |= asyncio.run(scenarios.measured(options.drains))
    if options.json:
        print(json.dumps(result, indent=1))
        return 0
    for name, value in result.items():
        if name not in TABLES:
            print(f"{name}: {value}")
    for table in TABLES:
        for name, cell in result.get(table, {}).items():
            print(f"{name}: {cell}")
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be an integer above 0; found {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollout", description=__doc__)
    words = "Rollouts of each candidate at each load. Default: 1000."
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="What to measure. Default: all.")
    parser.add_argument("--bumps", type=_positive, default=100, help="Good versions to release. Default: 100.")
    parser.add_argument("--bad-bumps", type=_positive, default=20, help="Bad versions to release. Default: 20.")
    parser.add_argument("--drains", type=_positive, default=100, help="Servers to end. Default: 100.")
    parser.add_argument("--runs", type=_positive, default=1000, help=words)
    parser.add_argument("--seconds", type=_positive, default=600, help="Virtual seconds of mirroring. Default: 600.")
    parser.add_argument("--workers", type=_positive, default=2, help="Processes. Default: 2.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
