"""Texts to calibrate on, in the form that TensorRT-LLM and modelopt read."""

import json
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError, BuildJob
from argosy_builder.data import Purpose, read_samples

SAMPLES = 512
"""The number of samples where none is requested: the default of `quantize_and_export`."""


def texts(job: BuildJob) -> tuple[str, ...]:
    """Return the texts of the calibration data. Raises BuildError: CALIBRATION_INVALID."""
    limit = job.request.calibration_samples
    if job.calibration is None:
        raise BuildError(
            BuildFailure.CALIBRATION_MISSING,
            "spec.engine.calibration: is required to quantize; set dataUri to prompts as the model will get them",
        )
    texts = read_samples(job.calibration, (), limit or SAMPLES, Purpose.CALIBRATION).texts
    if not texts:
        raise Purpose.CALIBRATION.error('holds no texts; a language model reads lines {"text": "…"} of a .jsonl file')
    if limit > len(texts):
        raise Purpose.CALIBRATION.error(
            f"holds {len(texts)} texts, and calibration.samples is {limit}; lower it, or give more"
        )
    if not any(text.strip() for text in texts):
        raise Purpose.CALIBRATION.error("holds empty texts alone")
    return tuple(texts)


def write_dataset(texts: tuple[str, ...], folder: Path) -> None:
    """Write a dataset in Hugging Face's format: `train.jsonl` with a column `text`."""
    folder.mkdir()
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
