"""TensorRT-LLM as a builder: which phases lead from a checkpoint to what is served."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape
from argosy_builder.contract import BuildError, BuildJob, Phase

from .checkpoints.calibration import texts
from .checkpoints.engineless import check_checkpoint, check_format, written
from .checkpoints.files import check_weights, read_config, read_shape
from .checkpoints.steps import converted
from .compatibility import check_fit, check_gpu
from .engine.readback import check_engine
from .engine.steps import CHECKPOINT, built, check_program
from .running import opened
from .running.runners import LanguageModel
from .settings import Settings, settings_of

PACKAGES = ("tensorrt_llm", "tensorrt", "nvidia-modelopt")
"""What decides an engine's files; the first must be there."""


class TensorRtLlm:
    """The builder of TensorRT-LLM engines and checkpoints."""

    name = "tensorrt_llm"

    def compiler(self) -> str:
        """Return the versions of TensorRT-LLM, TensorRT and modelopt, without importing them, as that takes a GPU."""
        versions = {name: version for name in PACKAGES if (version := _version(name))}
        if PACKAGES[0] not in versions:
            raise BuildError(
                BuildFailure.BUILDER_MISSING,
                "spec.engine.builder: this image has no tensorrt_llm; set engine.image to NVIDIA's TensorRT-LLM image, "
                "release 1.2",
            )
        return ", ".join(f"{name} {version}" for name, version in versions.items())

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        """Return the checkpoint, and the engine of it; of the engine-less path the checkpoint alone."""
        settings = settings_of(job.request)
        _check(job, settings)
        if not settings.is_engine:
            return (Phase(CHECKPOINT, 1, lambda workspace: written(job, settings, workspace)),)
        check_program()
        return (
            Phase(CHECKPOINT, 2 if settings.is_calibrated else 1, lambda space: converted(job, settings, space)),
            Phase("engine", 2, lambda space: built(job, settings, space)),
        )

    def check(self, job: BuildJob, folder: Path) -> None:
        """Compare the engine's own `config.json`, or the checkpoint's, with the request. Raises BuildError."""
        settings = settings_of(job.request)
        if settings.is_engine:
            check_engine(settings, folder)
        else:
            check_checkpoint(settings, folder)

    def shape(self, job: BuildJob) -> ModelShape | None:
        """Return the sizes in the checkpoint's `config.json`."""
        return read_shape(job.model)

    def runner(self, folder: Path, request: BuildRequest) -> AbstractContextManager[LanguageModel]:
        """Open a runner that reads texts and answers with logits. Raises BuildError."""
        return opened(folder, request)


def _check(job: BuildJob, settings: Settings) -> None:
    """Check all that can be checked before a GPU is used. Raises BuildError."""
    check_gpu(job.request)
    config = read_config(job.model)
    check_weights(job.model)
    check_fit(settings, config, read_shape(job.model))
    if not settings.is_engine:
        check_format(settings)
    if settings.is_calibrated:
        texts(job)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
