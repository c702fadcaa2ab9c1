"""NVIDIA's load generator, perf_analyzer, and what it measured as rows.

The binary comes in the Linux wheel of tritonclient, unpacked on its own so that the environment's
tritonclient stays as it is. It is linked with Debian's libb64 and with the CUDA runtime's library, which needs no GPU.
"""

import csv
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.peers.cache import PeerUnavailableError, installed, run, unpack_wheel

RELEASE = "2.49.0"
"""tritonclient's release; from 2.52 on the binary needs a newer C library than Debian 12 has."""


@dataclass(frozen=True)
class Row:
    """One concurrency level: inferences per second, and latencies in microseconds."""

    concurrency: int
    throughput: float
    average_us: float
    p50_us: float
    p90_us: float
    p95_us: float
    p99_us: float


class LoadError(Exception):
    """perf_analyzer ended with a failure; the message is what it printed."""


def install() -> Path:
    """Return the folder of the program and its libraries. Raises PeerUnavailableError when it is unavailable."""
    return installed(f"perf_analyzer-{RELEASE}", _build)


def _build(folder: Path) -> None:
    unpack_wheel(f"tritonclient=={RELEASE}", folder)
    program = _program(folder)
    if not program.is_file():
        raise PeerUnavailableError(f"the wheel of tritonclient {RELEASE} for this platform has no perf_analyzer")
    program.chmod(0o755)
    unpack_wheel("nvidia-cuda-runtime-cu12", folder)
    _unpack_libb64(folder)
    missing = [line.strip() for line in _linked(folder).splitlines() if "not found" in line]
    if missing:
        raise PeerUnavailableError(f"perf_analyzer lacks a library: {'; '.join(missing)}")


def _program(folder: Path) -> Path:
    return folder / f"tritonclient-{RELEASE}.data" / "data" / "bin" / "perf_analyzer"


def _libraries(folder: Path) -> str:
    return f"{folder / 'libb64'}:{folder / 'nvidia' / 'cuda_runtime' / 'lib'}"


def _linked(folder: Path) -> str:
    environment = f"LD_LIBRARY_PATH={_libraries(folder)}"
    return run(["env", environment, "ldd", str(_program(folder))], "reading what perf_analyzer is linked with")


def _unpack_libb64(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        unpacked = Path(scratch)
        unpacked.chmod(0o755)
        _download_libb64(unpacked)
        package = next(unpacked.glob("libb64-0d*.deb"))
        run(["dpkg", "-x", str(package), str(unpacked / "root")], "unpacking libb64-0d")
        library = next((unpacked / "root").rglob("libb64.so.0d"))
        (folder / "libb64").mkdir()
        library.rename(folder / "libb64" / library.name)


def _download_libb64(folder: Path) -> None:
    command = ["apt-get", "download", "libb64-0d"]
    try:
        run(command, "apt-get download libb64-0d", cwd=folder)
    except PeerUnavailableError:
        if os.geteuid() != 0:
            raise
        run(["apt-get", "update"], "apt-get update")
        run(command, "apt-get download libb64-0d", cwd=folder)


def perf_analyzer(args: Sequence[str], timeout_s: float = 300.0) -> list[Row]:
    """Run it with `args` and return a row per concurrency level it measured.

    Raises LoadError with its output when it fails, PeerUnavailableError when it cannot be had.
    """
    folder = install()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.csv"
        done = subprocess.run(
            [str(_program(folder)), *args, "-f", str(report), "--verbose-csv"],
            env={**os.environ, "LD_LIBRARY_PATH": _libraries(folder)},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode or not report.is_file():
            raise LoadError(f"perf_analyzer {' '.join(args)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return rows(report.read_text())


def rows(report: str) -> list[Row]:
    """Return the rows of the CSV report that perf_analyzer writes, by rising concurrency."""
    lines = csv.DictReader(report.split("\n\n")[0].splitlines())
    return sorted((_row(line) for line in lines), key=lambda row: row.concurrency)


def _row(line: dict[str, str]) -> Row:
    return Row(
        concurrency=int(line["Concurrency"]),
        throughput=float(line["Inferences/Second"]),
        average_us=float(line["Avg latency"]),
        p50_us=float(line["p50 latency"]),
        p90_us=float(line["p90 latency"]),
        p95_us=float(line["p95 latency"]),
        p99_us=float(line["p99 latency"]),
    )
