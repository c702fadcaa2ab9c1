"""A tiny checkpoint, and stand-ins for TensorRT-LLM and modelopt on the paths of this process and its children."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildRequest, DataSource
from argosy_agent.contract.engine_options.precisions import Precision
from argosy_agent.contract.engine_options.tensorrt_llm import asks_for_calibration
from argosy_builder.contract import BuildError, BuildJob
from argosy_builder.phases import Phases
from argosy_builder.tensorrt_llm import BUILDER

STANDINS = Path(__file__).parent / "standins"
TEXTS = tuple(f"the {word} of the house is {word}" for word in ["red", "green", "blue", "old", "new", "large", "small"])


def a_request(**changes: Any) -> BuildRequest:
    """Return a request for an engine, with these fields changed, and calibration data where it needs them."""
    fields: dict[str, Any] = {
        "builder": "tensorrt_llm",
        "architecture": "9.0",
        "compiler": "image",
        "store": "file:///engines",
        "model": DataSource("file:///model"),
    }
    request = BuildRequest(**(fields | changes))
    precision = Precision(request.precision) if request.precision else None
    if not asks_for_calibration(precision, request.options) or "calibration" in changes:
        return request
    return replace(request, calibration=DataSource("file:///texts"))


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Llama of two layers with four heads, two of them of keys, and a tokenizer of words. It is never written
    to.
    """
    import torch
    from tests import tiny_llama, tiny_tokenizers

    folder = tmp_path_factory.mktemp("attempt") / "prompted"  # names with traps in them
    words = ["[UNK]", "</s>", *sorted({word for text in TEXTS for word in text.split()})]
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "max_position_embeddings": 128}
    tiny_llama.model(len(words), **sizes).to(torch.bfloat16).save_pretrained(folder)
    tokenizer = tiny_tokenizers.words(words, "[UNK]")
    tiny_llama.loaded(tokenizer, unk_token="[UNK]", eos_token="</s>").save_pretrained(folder)
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Return data for calibration."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "prompts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return folder


@dataclass
class Standins:
    """The calls of the stand-ins, and the environment by which they fail or write something else."""

    calls_file: Path
    setenv: Callable[[str, str], None]
    progress: list[tuple[int, str]] = field(default_factory=list)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call, in order."""
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def fail(self, call: str, message: str, code: int = 1) -> None:
        """Let a call print this and end its process with an exit code."""
        self.setenv("STANDIN_FAIL", f"{call}|{message}|{code}")

    def change(self, **changes: Any) -> None:
        """Change the files that are written: keys are `engine:path` or `checkpoint:path`."""
        self.setenv("STANDIN_CHANGE", json.dumps(changes))


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standins:
    """Install the stand-in for TensorRT-LLM on a machine without a GPU."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "trtllm-build"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDINS / "trtllm_build.py"} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(STANDINS))
    monkeypatch.setenv("STANDIN_CALLS", str(tmp_path / "calls"))
    monkeypatch.syspath_prepend(str(STANDINS))
    return Standins(tmp_path / "calls", monkeypatch.setenv)


class NoStore:
    """A store that keeps no phases."""

    def load_phase(self, key: str, phase: str, folder: Path) -> bool:
        """Return that there is none."""
        return False

    def save_phase(self, key: str, phase: str, folder: Path) -> None:
        """Save nothing."""


@pytest.fixture
def build(tmp_path: Path, checkpoint: Path, standins: Standins) -> Callable[..., Path]:
    """Return a function that runs all phases of a request, reads the engine back, and returns its folder."""

    def run(request: BuildRequest, calibration: Path | None = None, model: Path | None = None) -> Path:
        progress = standins.progress
        job = BuildJob(request, model or checkpoint, calibration, lambda *line: progress.append(line))
        phases = Phases(tmp_path / "work", request.name, NoStore(), lambda line: None)
        with phases.alone():
            folder = phases.run(BUILDER.phases(job), lambda phase, start, end: None)
            BUILDER.check(job, folder)
        return folder

    return run


def refused(model: Path, calibration: Path | None = None, **changes: Any) -> BuildError:
    """Return the error that is raised before any tool runs."""
    with pytest.raises(BuildError) as error:
        BUILDER.phases(BuildJob(a_request(**changes), model, calibration))
    return error.value


@pytest.fixture
def model(checkpoint: Path, tmp_path: Path) -> Path:
    """Return a checkpoint of one's own, to break."""
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    return folder


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of a JSON file; None removes one."""
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
