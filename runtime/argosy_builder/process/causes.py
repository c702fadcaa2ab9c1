"""Causes of a process's end: its exit status and its last lines, as an error that people can act on. Pure."""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.failures.out_of_memory import GPU_WORDS, HOST_WORDS


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a failure: a regular expression searched in each line of a tool, and the message.

    `says` names the field and what to do; `{line}` in it is the tool's own line, `{0}`, `{1}` … the groups.
    """

    pattern: str
    failure: BuildFailure
    says: str


COMMON = (
    Cause(
        r"No space left on device|Disk quota exceeded|File too large|errno 28\b",
        BuildFailure.DISK_FULL,
        "the disk that the build works on is full: give it more room ({line})",
    ),
    Cause(
        GPU_WORDS,
        BuildFailure.OUT_OF_GPU_MEMORY,
        "the GPU's memory is not enough to build on: raise spec.parallelism, lower maxBatchSize or the sizes in "
        "engine.options, or quantize ({line})",
    ),
    Cause(
        HOST_WORDS,
        BuildFailure.OUT_OF_MEMORY,
        "the memory of the build is not enough: raise engine.memory ({line})",
    ),
    Cause(
        r"CUDA driver version is insufficient|no CUDA-capable device|CUDA_ERROR_NO_DEVICE|Found no NVIDIA driver",
        BuildFailure.BUILDER_MISSING,
        "the image's CUDA finds no GPU that it can use: set engine.image to one that suits the node's driver ({line})",
    ),
)
"""What any tool may say; a builder's own table is asked before."""

LAST = 5
"""So many of a tool's last lines go into the message where no cause is known."""


def explained(
    name: str, status: int, lines: Sequence[str], causes: Sequence[Cause] = (), *, ran_out_of_memory: bool = False
) -> BuildError:
    """Return the error of a tool that ended with `status` (below 0: by that signal) after these lines.

    `ran_out_of_memory`: the kernel killed for want of memory while it ran.
    """
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number == signal.SIGKILL and ran_out_of_memory:
        return BuildError(BuildFailure.OUT_OF_MEMORY, f"{name} took all of the build's memory: raise engine.memory")
    for cause in (*causes, *COMMON):
        for line in reversed(lines):
            if match := re.search(cause.pattern, line, re.IGNORECASE):
                text = cause.says.format(*match.groups(), line=line.strip())
                return BuildError(cause.failure, f"{name}: {text}")
    if number:
        return _by_signal(name, number, lines)
    return BuildError(BuildFailure.BUILD_FAILED, f"{name} failed with exit code {status}{_last(lines)}")


def _by_signal(name: str, number: int, lines: Sequence[str]) -> BuildError:
    if number == signal.SIGXFSZ:
        return BuildError(BuildFailure.DISK_FULL, f"{name} may write no larger file: give the build a larger disk")
    if number == signal.SIGKILL:
        message = "was killed (SIGKILL), most often for want of memory: raise engine.memory"
        return BuildError(BuildFailure.CRASHED, f"{name} {message}{_last(lines)}", passes=True)
    try:
        word = signal.Signals(number).name
    except ValueError:
        word = f"signal {number}"
    return BuildError(
        BuildFailure.CRASHED,
        f"{name} crashed ({word}): try other engine.options, or another engine.image{_last(lines)}",
    )


def _last(lines: Sequence[str]) -> str:
    last = " | ".join(line.strip() for line in lines[-LAST:] if line.strip())
    return f"; its last words: {last}" if last else ""
