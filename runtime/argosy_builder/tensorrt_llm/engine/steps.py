"""Building the engine of a checkpoint: `trtllm-build`, and the tokenizer next to it."""

import shutil

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError, BuildJob, Workspace
from argosy_builder.process import Limits, tool
from argosy_builder.tensorrt_llm.causes import CAUSES
from argosy_builder.tensorrt_llm.checkpoints.files import copy_tokenizer
from argosy_builder.tensorrt_llm.checkpoints.neutral import neutral_folder
from argosy_builder.tensorrt_llm.checkpoints.steps import environment
from argosy_builder.tensorrt_llm.progress import of_build
from argosy_builder.tensorrt_llm.settings import Settings

from .commands import PROGRAM, build_command

CHECKPOINT = "checkpoint"
"""The phase before."""
TOKENIZER = "tokenizer"
"""The folder beside the engine's files with what makes tokens of texts."""
SILENCE_S = 3600.0
"""TensorRT says nothing while it builds, which it computes on the GPU for part of the time."""


def check_program() -> None:
    """Raise BuildError, BUILDER_MISSING, where this release of TensorRT-LLM builds no engines any more, or is none."""
    if shutil.which(PROGRAM) is None:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"spec.engine.builder: this image has no {PROGRAM}: TensorRT-LLM builds engines up to 1.2; set "
            "engine.image to one of that release, or engine.options.backend: pytorch",
        )


def built(job: BuildJob, settings: Settings, workspace: Workspace) -> None:
    """Build every rank. Raises BuildError."""
    with neutral_folder() as folder:
        command = build_command(
            settings, workspace.finished[CHECKPOINT], workspace.out, timing_cache=folder / "model.cache"
        )
        tool(
            command,
            of_build(settings.ranks, job.progress),
            folder=folder,
            environment=environment(folder),
            causes=CAUSES,
            limits=Limits(silence_s=SILENCE_S),
        )
    copy_tokenizer(job.model, workspace.out / TOKENIZER)
