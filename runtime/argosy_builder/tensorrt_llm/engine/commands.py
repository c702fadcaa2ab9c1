"""The command line of `trtllm-build`. Pure."""

from pathlib import Path

from argosy_builder.tensorrt_llm.asked.options import ENABLED, LENGTHS, LISTS, SWITCHES, WORDS
from argosy_builder.tensorrt_llm.asked.settings import Settings

PROGRAM = "trtllm-build"


def build_command(settings: Settings, checkpoint: Path, engine: Path, timing_cache: Path) -> tuple[str, ...]:
    """Return what builds the engine of a checkpoint. Only what is asked is said, in the order of the tables.

    How it is split is not said: it stands in the checkpoint. The timing cache is named, as it would else be written
    where the process happens to run.
    """
    options = dict(settings.options)
    if settings.max_batch_size:
        options["max_batch_size"] = settings.max_batch_size
    if "max_seq_len" in options:
        options["max_input_len"] = settings.longest_prompt
    command = [PROGRAM, "--checkpoint_dir", str(checkpoint), "--output_dir", str(engine)]
    for name in (*LENGTHS, *WORDS):
        if name in options:
            command += [f"--{name}", str(options[name])]
    for name in ENABLED:
        if name in options:
            command += [f"--{name}", "enable" if options[name] else "disable"]
    command += [f"--{name}" for name in SWITCHES if options.get(name)]
    for name in LISTS:
        if name in options:
            command += [f"--{name}", *map(str, options[name])]
    command += ["--workers", str(settings.workers), "--output_timing_cache", str(timing_cache), "--log_level", "info"]
    return tuple(command)
