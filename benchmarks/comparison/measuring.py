"""One load on one server: perf_analyzer's rate and latencies, and the CPU time that a request cost the server.

CPU time is that of the server's process and all below it (models' processes, Triton's stubs), from before
perf_analyzer starts until it has ended, divided by the requests that the server counted meanwhile.
"""

import json
import resource
import urllib.request
from dataclasses import dataclass

import psutil
from tests.peers.perf_analyzer import perf_analyzer
from tests.peers.server import Server

from .load import Load

_WINDOWS = ("-r", "3", "-s", "1000")
"""Three windows, averaged however much they differ: a shared machine rarely gives three alike."""
_LONGEST_SECONDS = 120.0


@dataclass(frozen=True)
class Measured:
    """`rate` in requests/s, latencies in µs, `cpu_us` µs of CPU a request of the server's processes together.

    Of those, `server_us` are the server's own process' and the rest the models'; `kernel_us` are spent in the kernel.
    `client_us` is what perf_analyzer itself spends on a request: the share of the machine that no server can save.
    """

    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float
    server_us: float = 0.0
    kernel_us: float = 0.0
    client_us: float = 0.0


@dataclass(frozen=True)
class CpuTime:
    """Seconds so far: of a process and all that descend from it, of the process alone, of all in the kernel."""

    total: float
    own: float
    kernel: float


def measure(server: Server, load: Load, window_ms: int) -> Measured:
    """Run the load on one server, for three windows. Raises LoadError when it fails."""
    address = server.http if load.protocol == "http" else server.grpc
    before, requests, client = cpu_time(server.process.pid), _requests(server, load.model), _ended_children()
    arguments = [*load.arguments(), "-u", address, "-p", str(window_ms), *_WINDOWS]
    row = perf_analyzer(arguments, timeout_s=_LONGEST_SECONDS)[0]
    after, client = cpu_time(server.process.pid), _ended_children() - client
    scale = 1e6 / (_requests(server, load.model) - requests)
    total, own, kernel = after.total - before.total, after.own - before.own, after.kernel - before.kernel
    return Measured(row.throughput, row.p50_us, row.p99_us, total * scale, own * scale, kernel * scale, client * scale)


def cpu_time(pid: int) -> CpuTime:
    """Return the CPU time that a process and its living descendants have used so far."""
    root = psutil.Process(pid)
    times = [root.cpu_times()]
    for process in root.children(recursive=True):
        try:
            times.append(process.cpu_times())
        except psutil.NoSuchProcess:
            continue
    total = sum(time.user + time.system for time in times)
    return CpuTime(total, times[0].user + times[0].system, sum(time.system for time in times))


def _ended_children() -> float:
    """Return the CPU seconds of the programs that this one has run and that have ended; servers run on."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _requests(server: Server, model: str) -> int:
    """Return the number of requests to the model that the server has answered since it started."""
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats", timeout=30) as answer:
        statistics = json.load(answer)["model_stats"]
    return sum(int(version["inference_stats"]["success"]["count"]) for version in statistics)
