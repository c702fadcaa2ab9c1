"""Recorded answers of the real Triton (`recorded/`), and the flags that both servers are started with.

A recording is read as it is and never edited by hand: `python -m tests.differential.record` writes it again.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

MODELS = Path(__file__).resolve().parents[1] / "models"
FORWARDED = "^(FWD-|triton_fwd|priority$)"
"""Headers that become parameters, two of them by reserved names."""
RECORDED = Path(__file__).parent / "recorded"


def models_in(repository: Path) -> list[str]:
    """Return the names of its models."""
    return sorted(folder.name for folder in repository.iterdir() if (folder / "1").is_dir())


OWN_FLAGS = {"triton": [], "argosy": ["--allow-client-shm=true"]}
"""What Triton has without a flag."""


def flags(models: Iterable[str] = ()) -> list[str]:
    """Return explicit control with these models loaded, or every one, so that one server serves every check."""
    forwarded = [f"--{protocol}-header-forward-pattern={FORWARDED}" for protocol in ("http", "grpc")]
    return [
        "--model-control-mode=explicit",
        *forwarded,
        *(f"--load-model={name}" for name in models or models_in(MODELS)),
    ]


@cache
def recorded(topic: str) -> dict[str, Any]:
    """Return Triton's answers by case name."""
    loaded: dict[str, Any] = json.loads((RECORDED / f"{topic}.json").read_text())
    return loaded


def record(topic: str, answers: Iterable[tuple[str, Any]]) -> None:
    """Write Triton's answers down, one line per case."""
    by_name = dict(answers)
    lines = (f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True)}" for name, answer in by_name.items())
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{topic}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
