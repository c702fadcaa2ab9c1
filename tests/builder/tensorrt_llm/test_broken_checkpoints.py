"""A broken checkpoint, or data that cannot calibrate, is told before any tool runs."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildFailure

from .conftest import TEXTS, Standins, refused, rewrite


def cut_off(model: Path) -> str:
    """Cut off the end of the weights."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return "model.safetensors has"


def header_cut_off(model: Path) -> str:
    """Cut off the weights within their header."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    return "model.safetensors is no safetensors file, or cut off (50 bytes)"


def pointer(model: Path) -> str:
    """Leave Git LFS's pointer in place of the file."""
    (model / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n")
    return "is a pointer of Git LFS"


def broken_header(model: Path) -> str:
    """Write a header that is no JSON."""
    (model / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope" + b"x" * 20)
    return "has a header that cannot be read"


def missing_shard(model: Path) -> str:
    """Name a shard in the index that does not exist."""
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00002-of-00002.safetensors"}}')
    return "model.safetensors.index.json names model-00002-of-00002.safetensors, which the model's files have not"


def broken_index(model: Path) -> str:
    """Cut off the index."""
    (model / "model.safetensors.index.json").write_text('{"weight_map": ')
    return "model.safetensors.index.json cannot be read"


def no_weights(model: Path) -> str:
    """Remove the weights."""
    (model / "model.safetensors").unlink()
    return "there are no weights among the model's files"


def no_config(model: Path) -> str:
    """Remove config.json."""
    (model / "config.json").unlink()
    return "config.json is missing; a Hugging Face checkpoint has one, and here is"


def broken_config(model: Path) -> str:
    """Cut off config.json."""
    (model / "config.json").write_text('{"architectures": [')
    return "config.json cannot be read"


def no_architecture(model: Path) -> str:
    """Remove the names of architectures from config.json."""
    rewrite(model / "config.json", architectures=None)
    return "names no architectures"


BROKEN = (
    cut_off,
    header_cut_off,
    pointer,
    broken_header,
    missing_shard,
    broken_index,
    no_weights,
    no_config,
    broken_config,
    no_architecture,
)


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_checkpoint_is_reported_before_anything_runs(
    damage: Callable[[Path], str], model: Path, standins: Standins
) -> None:
    message = damage(model)
    error = refused(model)
    assert error.failure is BuildFailure.MODEL_INVALID
    assert message in error.message
    assert not standins.calls


@pytest.mark.parametrize(
    ("lines", "samples", "failure", "message"),
    [
        (None, 0, BuildFailure.CALIBRATION_MISSING, "spec.engine.calibration: is required"),
        ([], 0, BuildFailure.CALIBRATION_INVALID, "spec.engine.calibration.dataUri"),
        ([{"tokens": [1, 2]}], 0, BuildFailure.CALIBRATION_INVALID, "holds no texts"),
        ([{"text": "  "}], 0, BuildFailure.CALIBRATION_INVALID, "holds empty texts alone"),
        (
            [{"text": text} for text in TEXTS],
            512,
            BuildFailure.CALIBRATION_INVALID,
            "holds 7 texts, and calibration.samples is 512",
        ),
    ],
)
def test_bad_calibration_data_is_reported_before_anything_runs(
    lines: list[Any] | None,
    samples: int,
    failure: BuildFailure,
    message: str,
    checkpoint: Path,
    tmp_path: Path,
    standins: Standins,
) -> None:
    folder = None
    if lines is not None:
        folder = tmp_path / "data"
        folder.mkdir()
        (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    error = refused(checkpoint, folder, precision="fp8", calibration_samples=samples)
    assert error.failure is failure
    assert message in error.message
