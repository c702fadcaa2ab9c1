"""Where a model is measured: on this machine, or by a Job in a cluster. The options that say so."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from argosy.api import Resource
from argosy.bench.profile.lines import Measured
from argosy.cli.profile.job import TIMEOUT_S, WAIT_S, JobSettings, declared_in_cluster, measured_by_job
from argosy.local.machine import this_machine
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.sweep import Steps, sweep
from argosy.local.state import StateFolder

Report = Callable[[str], None]
"""Is called with each line of progress."""
_CLUSTER = "In a cluster"


@dataclass(frozen=True, slots=True)
class Where:
    """The values of these options."""

    job: Annotated[
        bool, typer.Option("--job", help="Measure in a Job, on whole GPUs of a node.", rich_help_panel=_CLUSTER)
    ] = False
    gpu_type: Annotated[
        str | None,
        typer.Option(
            help='A product, such as NVIDIA-L4, or capabilities, such as ">= 8.9". Default: the model\'s gpuType.',
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Of the Job. Default: the manifest's, or without -f that of the kubeconfig's context.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    image: Annotated[
        str | None,
        typer.Option(
            help="The bundled server's image. Default: that of the pool, or of its servers that run.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    wait: Annotated[
        float | None,
        typer.Option(
            min=1, help=f"Seconds that it may wait for a node. Default: {WAIT_S:g}.", rich_help_panel=_CLUSTER
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(min=1, help=f"Seconds that all of it may take. Default: {TIMEOUT_S:g}.", rich_help_panel=_CLUSTER),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="How to reach the cluster. Default: as kubectl.", exists=True, rich_help_panel=_CLUSTER),
    ] = None
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.", rich_help_panel=_CLUSTER)] = None

    def problems(self, filenames: Sequence[Path]) -> list[str]:
        """Return the errors of options that do not go together."""
        if self.job:
            return []
        problems = [] if filenames else ["--filename: name the manifests, or measure in a cluster by --job"]
        of_jobs = ("gpu_type", "namespace", "image", "wait", "timeout", "kubeconfig", "context")
        options = [f"--{name.replace('_', '-')}" for name in of_jobs if getattr(self, name) is not None]
        return problems + [
            f"{option}: has an effect with --job alone; add it, or leave the option out" for option in options
        ]

    def resources(self, model: str, filenames: Sequence[Path]) -> list[Resource] | None:
        """Return the resources of the cluster; None where they are in files. Raises JobError."""
        return declared_in_cluster(model, self._settings) if self.job and not filenames else None

    def measure(self, profiled: Profiled, steps: Steps, report: Report) -> Measured:
        """Measure there. Raises JobError, ListenError, and StoppedError or CancelledError at a signal."""
        if self.job:
            return measured_by_job(profiled, steps, self._settings, report)
        return asyncio.run(_measured_here(profiled, steps, report))

    @property
    def _settings(self) -> JobSettings:
        return JobSettings(
            self.kubeconfig,
            self.context,
            self.namespace,
            self.gpu_type,
            self.image,
            self.timeout or TIMEOUT_S,
            self.wait or WAIT_S,
        )


async def _measured_here(profiled: Profiled, steps: Steps, report: Report) -> Measured:
    """Sweep in a folder of its own."""
    node = this_machine()
    with tempfile.TemporaryDirectory(prefix="argosy-profile-") as folder:
        state = StateFolder(Path(folder))
        state.create()
        return Measured(await sweep(profiled, steps, node, state, report), node.product or node.name)
