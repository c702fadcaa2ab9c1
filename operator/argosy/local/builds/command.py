"""What a builder is started with, and the folder that it works in.

request.json       what is asked
report.json        what it says of itself
inputs.json        which files of this machine it read
builder.log        its output
process.json       the running process
workspace/         its own: what a later try goes on from
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "argosy_builder")
"""The bundled builder."""
LOG = "builder.log"


@dataclass(frozen=True, slots=True)
class BuilderCommand:
    """One builder in its folder. `devices` becomes CUDA_VISIBLE_DEVICES; empty hides every GPU."""

    folder: Path
    timeout_s: float = 0.0
    devices: tuple[str, ...] = ()
    program: tuple[str, ...] = PROGRAM

    def arguments(self) -> list[str]:
        """Return the command line. Claims and Secrets of a cluster are nowhere here: credentials are this shell's."""
        return [
            *self.program,
            f"--request={self.folder / 'request.json'}",
            f"--workspace={self.folder / 'workspace'}",
            f"--report-file={self.folder / 'report.json'}",
            f"--pvc-root={self.folder / 'claims'}",
            f"--secrets={self.folder / 'secrets'}",
            f"--secrets-root={self.folder / 'secrets'}",
            "--allowed-folder=/",
            f"--timeout={self.timeout_s:g}",
        ]

    def variables(self) -> Mapping[str, str]:
        """Return what is set in its environment beyond this process's own."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.devices)}

    def record(self) -> Mapping[str, Any]:
        """Return what stands in process.json."""
        return {"arguments": self.arguments()}
