"""`python -m tests.fuzz [TARGET …] [--seconds N]`: fuzz functions that read what clients and model owners send.

Each target runs in a process of its own, guided by coverage (atheris, of the extra `fuzz`), for so many seconds, over
inputs that begin as requests of the differential tests. An input that raises, or takes longer than 10 s, is written to
`tests/fuzz/findings/TARGET`, where the tests run it from then on. What reached new code is kept in `.cache/fuzz`, and
is where the next run begins.

Modules that are compiled have no coverage: `make fuzz` runs their sources.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.registry import TARGETS
from tests.fuzz.target import FINDINGS, Target

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / ".cache" / "fuzz"
_SECONDS = 20
_SLOW_S = 10
_MOST_MEMORY_MB = 2048
_RUNS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+)")
_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*|^ALARM: .*|^==\d+== ERROR: libFuzzer: .*", re.MULTILINE)


@dataclass(frozen=True)
class Report:
    """What a process printed: how many inputs it ran, how many branches it saw, and the error of one that failed."""

    runs: int
    covered: int
    error: str

    @classmethod
    def of(cls, output: str, failed: bool) -> "Report":
        """Return the report in a process' output."""
        runs, covered = _RUNS.findall(output) or ["0"], _COVERED.findall(output) or ["0"]
        errors = _ERROR.findall(output) or [output.strip().rpartition("\n")[2]]
        return cls(int(runs[-1]), int(covered[-1]), errors[0] if failed else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz, or run one input again. The exit status is 1 where an input failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; by default all")
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="for each target")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run a target with this input alone")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.targets if name not in TARGETS]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    targets = [TARGETS[name] for name in options.targets or TARGETS]
    if options.repeat is not None:
        for target in targets:
            target.run(options.repeat.read_bytes())
        return 0
    if find_spec("atheris") is None:
        parser.error("this needs atheris: pip install 'argosy[fuzz]'")
    reports = [_shown(target, _fuzzed(target, options.seconds)) for target in targets]
    return int(any(report.error for report in reports))


def _fuzzed(target: Target, seconds: int) -> Report:
    corpus, findings = CORPUS / target.name, FINDINGS / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as seeds:
        for name, data in target.inputs().items():
            Path(seeds, name).write_bytes(data)
        flags = [f"-max_total_time={seconds}", f"-timeout={_SLOW_S}", f"-rss_limit_mb={_MOST_MEMORY_MB}"]
        flags += ["-print_final_stats=1", f"-artifact_prefix={findings}/", str(corpus), seeds]
        command = [sys.executable, "-m", "tests.fuzz.child", target.run.__module__, target.name, *flags]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    if not any(findings.iterdir()):
        findings.rmdir()
    return Report.of(done.stdout + done.stderr, done.returncode != 0)


def _shown(target: Target, report: Report) -> Report:
    counts = f"{report.runs:>9} runs {report.covered:>6} branches"
    print(f"{target.name:20} {counts}  {report.error or 'passed'}", flush=True)
    if report.error:
        newest = max((FINDINGS / target.name).glob("*"), key=lambda path: path.stat().st_mtime, default=None)
        if newest is not None:
            print(f"  python -m tests.fuzz {target.name} --repeat {newest.relative_to(ROOT)}", flush=True)
    return report


if __name__ == "__main__":
    sys.exit(main())
