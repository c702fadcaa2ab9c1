"""The builder `aotinductor`: phases, each a call into a process of its own."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape
from argosy_builder.contract import BuildError, BuildJob, Phase, Runner, Workspace
from argosy_builder.process import Cause, call

from .files import check_format, model_file, output_name
from .settings import settings_of

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Kubernetes' names of architectures by Linux's."""
ANSWER_S = 20.0


class AotInductorBuilder:
    """An exported program or Python source in, a package out."""

    name = "aotinductor"

    def compiler(self) -> str:
        """Return the versions of torch and of the C++ compiler, either of which changes the files."""
        if find_spec("torch") is None:
            raise BuildError(
                BuildFailure.BUILDER_MISSING,
                "engine.builder: aotinductor needs the package torch, which this image has not: pip install "
                "'argosy[pytorch,builder]', or set engine.image to an image that has it",
            )
        return f"torch {version('torch')}, {_cxx()}"

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        """Return the steps: export, compile. Raises BuildError."""
        _check_machine(job.request)
        settings = settings_of(job.request)
        source = model_file(job.model, job.request.filename)
        check_format(source)
        request = job.request

        def export(workspace: Workspace) -> None:
            call(
                f"{__package__}.exporting:export",
                {
                    "source": str(source),
                    "out": str(workspace.out),
                    "inputs": [(tensor.name, tensor.data_type, tensor.dims) for tensor in request.inputs],
                    "max_batch_size": request.max_batch_size,
                    "autocast": settings.autocast,
                    "device": settings.device,
                    "strict": settings.strict,
                },
                job.progress,
            )

        def compile_(workspace: Workspace) -> None:
            _compile(job, workspace)

        return Phase("export", 2, export), Phase("compile", 8, compile_)

    def check(self, job: BuildJob, folder: Path) -> None:
        """Compare the package with the program of its export phase. Raises BuildError."""
        settings = settings_of(job.request)
        call(
            f"{__package__}.checking:check_package",
            {
                "package": str(folder / output_name(job.request.filename)),
                "exported": str(folder.with_name("export")),
                "max_batch_size": job.request.max_batch_size,
                "autocast": settings.autocast,
                "device": settings.device,
                "simdlen": settings.inductor.get("cpp.simdlen", 0),
            },
            job.progress,
        )

    def shape(self, job: BuildJob) -> ModelShape | None:
        """Return None, since a program does not contain the shape."""
        return None

    @contextmanager
    def runner(self, folder: Path, request: BuildRequest) -> Iterator[Runner]:
        """Open the model's program or the engine's package. Raises BuildError."""
        from .running import TorchRunner

        yield TorchRunner(folder, request)


def _compile(job: BuildJob, workspace: Workspace) -> None:
    settings = settings_of(job.request)
    scratch = workspace.out.with_name("compile.scratch")
    try:
        call(
            f"{__package__}.compiling:compile_package",
            {
                "exported": str(workspace.finished["export"]),
                "target": str(workspace.out / output_name(job.request.filename)),
                "device": settings.device,
                "capability": job.request.architecture,
                "inductor": dict(settings.inductor),
            },
            job.progress,
            causes=CAUSES,
            environment={"TORCHINDUCTOR_CACHE_DIR": str(scratch), "TMPDIR": str(_made(scratch))},
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cxx() -> str:
    """Return the C++ compiler that AOTInductor takes, with its version. Raises BuildError: BUILDER_MISSING."""
    name = os.environ.get("CXX", "g++")
    if shutil.which(name) is None:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"engine.builder: aotinductor needs a C++ compiler, and this image has no {name}: build the image with "
            "--build-arg SYSTEM=g++, or set engine.image to an image that has one",
        )
    command = [name, "-dumpfullversion", "-dumpversion"]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_S).stdout
    match = re.search(r"\d[\w.]*", output)
    return f"{Path(name).name} {match[0] if match else 'of unknown version'}"


def _check_machine(request: BuildRequest) -> None:
    required = MACHINES.get(request.architecture, platform.machine())
    if required != platform.machine():
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"engine.builder: aotinductor compiles for the kind of machine that it runs on, which is "
            f"{platform.machine()}: build on a node of {request.architecture}",
        )


CAUSES = (
    Cause(
        r"Killed signal terminated program cc1plus|cc1plus: out of memory",
        BuildFailure.OUT_OF_MEMORY,
        "the C++ compiler took all of the build's memory: raise engine.memory ({line})",
    ),
    Cause(
        r"fatal error: (\S+): No such file",
        BuildFailure.BUILDER_MISSING,
        "the C++ compiler lacks the header {0}: set engine.image to an image with g++ and its libraries",
    ),
    Cause(
        r"ptxas fatal|no kernel image is available",
        BuildFailure.UNSUPPORTED_MODEL,
        "the GPU's compiler refuses a kernel: try another engine.image ({line})",
    ),
    Cause(
        r"(?:LoweringException|MissingOperator\w*|NotImplementedError): (.*)",
        BuildFailure.UNSUPPORTED_MODEL,
        "AOTInductor cannot compile an operator of the model: {0}",
    ),
)
"""What torch and the C++ compiler say."""
