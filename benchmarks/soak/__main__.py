"""`python -m benchmarks.soak --minutes N`: what clients do of all kinds, at once, for so long.

They load and unload models, let one crash, cancel requests, read streams, and send sequences and tensors in shared
memory; responses are cached and one request in ten is traced.

It starts a server of its own, and measures it twice at rest: after a fifth of the time, and at the end. At rest it has
as many processes as before; one that is ending, or that follows one that crashed, is waited for. What its processes
hold more then is what it keeps for ever. The exit status is 1 where an answer is wrong or lost, or an error
of a model that never fails.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table
from tests.peers.argosy import argosy
from tests.peers.server import Server

from .clients import soak
from .models import FRAIL, SOUND, STREAM, SUM, write_repository
from .tally import Tally

FLAGS = ("--model-control-mode=explicit", "--cache-config=local,size=1048576", "--allow-client-shm=true")
"""The cache is smaller than the responses, so that some are evicted."""
TRACES = ("--trace-config=level=TIMESTAMPS", "--trace-config=rate=10", "--trace-config=triton,log-frequency=100")
_WARM_UP = 0.2
_REST_S = 60.0
_LOOK_S = 0.2


def main(argv: list[str] | None = None) -> int:
    """Soak a server, print what came of it, and return 1 where an answer was not as it should be."""
    options = _parser().parse_args(argv)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder) / "models")
        flags = [*FLAGS, *TRACES, f"--trace-config=triton,file={folder}/trace.json"]
        flags += [*(f"--load-model={name}" for name in (*SOUND, FRAIL, STREAM, SUM))]
        server = argosy(Path(folder) / "models", *flags, log=Path(folder) / "log")
        try:
            figures = _run(server, tally, 60 * options.minutes, options.seed)
        finally:
            server.stop()
        figures["trace_files"] = len(list(Path(folder).glob("trace.json*")))
    figures |= asdict(tally)
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        Console().print(_table(figures))
    return int(bool(tally.wrong_answers or tally.lost_answers or tally.failed_answers))


def _run(server: Server, tally: Tally, seconds: float, seed: int) -> dict[str, float]:
    """Return how much more memory (MiB) and files the server's processes hold at the end than after the warm-up."""
    process = psutil.Process(server.process.pid)
    processes = len(_tree(process))
    asyncio.run(soak(tally, server.grpc, server.http, _WARM_UP * seconds, seed))
    memory, files = _usage(process, processes)
    asyncio.run(soak(tally, server.grpc, server.http, (1 - _WARM_UP) * seconds, seed + 1))
    memory_after, files_after = _usage(process, processes)
    return {
        "minutes": seconds / 60,
        "rss_growth_mb": round((memory_after - memory) / 2**20, 2),
        "fd_growth": files_after - files,
        "rss_mb": round(memory_after / 2**20, 1),
    }


def _usage(process: psutil.Process, processes: int) -> tuple[int, int]:
    """Return the resident bytes and the open files of a process and its descendants together, once there are so many.

    Where there are more or fewer for `_REST_S` seconds, they count as they are.
    """
    until = time.monotonic() + _REST_S
    while len(_tree(process)) != processes and time.monotonic() < until:
        time.sleep(_LOOK_S)
    tree = _tree(process)
    return sum(process.memory_info().rss for process in tree), sum(process.num_fds() for process in tree)


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _table(figures: dict[str, float]) -> Table:
    table = Table("what", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:g}")
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
