"""`python -m benchmarks.engines [--json]`: builds one engine by each builder that runs here, and compares.

Keys: `speedup_int8` and `speedup_pt2` are the medians of the rounds' ratios of engine to file, `cached_s` the seconds
of the second request for an engine that is there (the slower one's).
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from argosy_agent.contract.builddocuments import parse_report, request_text
from argosy_agent.contract.builds import BuildReport, BuildRequest, BuildState, DataSource, Gate
from argosy_agent.transfer.localfiles import digest_of
from argosy_builder.onnxruntime.optimizing import MACHINES

from .models import MOST, Subject, encoder, perceptron
from .serving import Served, in_turns

BATCH = 8


def main() -> None:
    """Print what was measured."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="argosy-engines-") as folder:
        engines = {
            "int8": compared(perceptron(Path(folder, "int8")), Path(folder, "int8"), options),
            "pt2": compared(encoder(Path(folder, "pt2")), Path(folder, "pt2"), options),
        }
    result: dict[str, Any] = {f"speedup_{name}": figures["speedup"] for name, figures in engines.items()}
    result["cached_s"] = max(figures["cached_s"] for figures in engines.values())
    result |= engines
    print(json.dumps(result, indent=1) if options.json else _table(engines))


def compared(subject: Subject, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Build one engine, request it a second time, and compare it with its source file."""
    request = _request(subject, folder)
    built = built_by(request, folder / "first")
    digested = replace(request, model=replace(request.model, digest=_digest(subject)))
    begin = time.perf_counter()
    cached = built_by(replace(digested, gate=None), folder / "second")
    cached_s = time.perf_counter() - begin
    assert cached.cached
    engine = next(Path(built.uri.removeprefix("file://")).iterdir())
    x = np.random.default_rng(4).normal(size=(BATCH, *subject.inputs[0].dims)).astype(np.float32)
    both = [Served(subject, subject.file), Served(subject, engine)]
    difference = float(np.abs(both[0].answer(x) - both[1].answer(x)).max())
    rounds = in_turns(both, x, options.rounds, options.seconds)
    assert built.accuracy is not None
    return {
        "builder": built.compiler,
        "precision": subject.precision,
        "speedup": round(median(after / before for before, after in rounds), 2),
        "file_per_s": round(median(before for before, _ in rounds)),
        "engine_per_s": round(median(after for _, after in rounds)),
        "file_bytes": subject.file.stat().st_size,
        "engine_bytes": engine.stat().st_size,
        "cosine_similarity": round(built.accuracy.value, 6),
        "max_absolute_error": difference,
        "build_s": built.seconds,
        "cached_s": round(cached_s, 2),
    }


def _request(subject: Subject, folder: Path) -> BuildRequest:
    architecture = next(name for name, machine in MACHINES.items() if machine == platform.machine())
    return BuildRequest(
        subject.builder,
        architecture,
        "benchmark",
        (folder / "store").as_uri(),
        DataSource(subject.file.parent.as_uri()),
        precision=subject.precision,
        options=subject.options,
        inputs=subject.inputs,
        outputs=subject.outputs,
        max_batch_size=MOST,
        calibration=subject.calibration,
        gate=Gate(DataSource(subject.data.as_uri()), metric="cosine_similarity", minimum=subject.minimum),
    )


def _digest(subject: Subject) -> str:
    return digest_of(subject.file.parent)


def built_by(request: BuildRequest, workspace: Path) -> BuildReport:
    """Run a build as a Job runs it and return its report. Raises RuntimeError where there is no engine."""
    workspace.mkdir(parents=True)
    request_file, report = workspace / "request.json", workspace / "report.json"
    request_file.write_text(request_text(request))
    command = [
        sys.executable,
        "-m",
        "argosy_builder",
        "--log=warning",
        "--allowed-folder=/",
        f"--request={request_file}",
    ]
    subprocess.run([*command, f"--workspace={workspace}", f"--report-file={report}"], check=False)
    result = parse_report(report.read_text())
    if result.state is not BuildState.READY:
        raise RuntimeError(f"{request.builder}: {result.failure}: {result.message}")
    return result


def _table(engines: dict[str, dict[str, Any]]) -> str:
    names = list(next(iter(engines.values())))
    lines = [f"| | {' | '.join(engines)} |", f"|---|{'---|' * len(engines)}"]
    lines += [f"| {name} | {' | '.join(str(figures[name]) for figures in engines.values())} |" for name in names]
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.engines", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=7, help="how often each answers in turn")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each answers in a round")
    return parser.parse_args()


if __name__ == "__main__":
    main()
