"""Building the engine of a checkpoint: the command line of `trtllm-build`, its run, and the tokenizer next to it."""

import shutil
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_agent.contract.engine_options.option import Kind
from argosy_agent.contract.engine_options.tensorrt_llm.engine import CONVERT, ENGINE
from argosy_builder.contract import BuildError, BuildJob, Workspace
from argosy_builder.process import Limits, tool
from argosy_builder.tensorrt_llm.causes import CAUSES
from argosy_builder.tensorrt_llm.checkpoints.files import copy_tokenizer
from argosy_builder.tensorrt_llm.checkpoints.neutral import neutral_folder
from argosy_builder.tensorrt_llm.checkpoints.steps import environment
from argosy_builder.tensorrt_llm.progress import of_build
from argosy_builder.tensorrt_llm.settings import Settings

PROGRAM = "trtllm-build"
ARGUMENTS = {name: option for name, option in ENGINE.items() if name not in {*CONVERT, "kv_cache_dtype", "workers"}}
"""The options that are arguments of the program, by their own names."""
SWITCHES = frozenset({"gather_context_logits", "weight_sparsity", "weight_streaming", "fast_build", "monitor_memory"})
"""Flags whose argument has no value."""
TOGGLES = frozenset(name for name, option in ARGUMENTS.items() if option.kind is Kind.FLAG) - SWITCHES
"""Flags whose argument is enable or disable."""


def build_command(settings: Settings, checkpoint: Path, engine: Path, timing_cache: Path) -> tuple[str, ...]:
    """Return the command that builds the engine of a checkpoint, with the requested options in the table's order.

    The parallelism is not among them: it stands in the checkpoint. The timing cache is named, since it would else be
    written to the working directory of the process.
    """
    options = dict(settings.options)
    if settings.max_batch_size:
        options["max_batch_size"] = settings.max_batch_size
    if "max_seq_len" in options:
        options["max_input_len"] = settings.longest_prompt
    command = [PROGRAM, "--checkpoint_dir", str(checkpoint), "--output_dir", str(engine)]
    for name in ARGUMENTS:
        if name in options:
            command += _argument(name, options[name])
    command += ["--workers", str(settings.workers), "--output_timing_cache", str(timing_cache), "--log_level", "info"]
    return tuple(command)


def _argument(name: str, value: Any) -> list[str]:
    if name in SWITCHES:
        return [f"--{name}"] if value else []
    if name in TOGGLES:
        return [f"--{name}", "enable" if value else "disable"]
    return [f"--{name}", *map(str, value if isinstance(value, list) else [value])]


CHECKPOINT = "checkpoint"
"""The phase before."""
TOKENIZER = "tokenizer"
"""The folder of the tokenizer, next to the engine's files."""
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
