"""`python -m tests.differential.record`: asks the real Triton every case, and writes its answers down."""

import tempfile
from pathlib import Path
from typing import Any

from tests.differential import (
    flag_cases,
    grpc_cases,
    http_cases,
    limits,
    metrics_cases,
    shared_memory_cases,
    span_cases,
    statistics_cases,
    trace_cases,
)
from tests.differential.cases import http_python
from tests.differential.http_calls import Case
from tests.differential.oracle import MODELS, flags, record
from tests.peers.triton import triton

ATTEMPTS = 5


def main() -> None:
    """Record every topic."""
    record("flags", [("help", flag_cases.flags_in(flag_cases.help_of_triton()))])
    with tempfile.TemporaryDirectory() as folder:
        server = triton(MODELS, *flags(), log=Path(folder) / "triton.log")
        try:
            for topic, cases in http_cases.TOPICS.items():
                record(topic, [(case.name, http_cases.answers(server.http, case)) for case in cases])
            grpc = grpc_cases.CASES
            record("grpc", [(case.name, grpc_cases.answer(server.grpc, case)) for case in grpc])
            shared = [(case.name, shared_memory_cases.answers(server, case)) for case in shared_memory_cases.CASES]
            record("shared_memory", shared)
            moved = statistics_cases.CASES
            record("statistics", [(case.name, statistics_cases.moved(server.http, case)) for case in moved])
            metrics = [(case.name, metrics_cases.moved(server, case)) for case in metrics_cases.CASES]
            record("metrics", [*metrics, ("families", metrics_cases.families(server))])
        finally:
            server.stop()
        traced = trace_cases.CASES
        record("traces", [(case.name, trace_cases.outcome(triton, case, _below(folder, case.name))) for case in traced])
    raising = http_python.RAISING_CASES
    record("http_python_raising", [(case.name, _answers_of_its_own_server(case)) for case in raising])
    record("spans", [(model, span_cases.spans(triton, model)) for model in span_cases.CASES])
    limits.main()


def _answers_of_its_own_server(case: Case) -> list[Any]:
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as folder:
            server = triton(
                MODELS, "--model-control-mode=explicit", "--load-model=probe", log=Path(folder) / "triton.log"
            )
            try:
                return http_cases.answers(server.http, case)
            except ConnectionError:
                continue
            finally:
                server.stop()
    raise ConnectionError(f"Triton ended {ATTEMPTS} times before it answered {case.name!r}")


def _below(folder: str, name: str) -> Path:
    path = Path(folder) / name
    path.mkdir()
    return path


if __name__ == "__main__":
    main()
