"""The builder `tensorrt`: phases, each a call into a process of its own."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape
from argosy_builder.contract import BuildError, BuildJob, Phase, Runner, Workspace
from argosy_builder.process import call

from .causes import CAUSES
from .opening import is_quantized, model_file
from .settings import Settings, settings_of

DISTRIBUTIONS = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12")
_CACHE = "timing.cache"
_ONNX = "model.onnx"


class TensorRtBuilder:
    """ONNX in, a plan out."""

    name = "tensorrt"

    def compiler(self) -> str:
        """Return TensorRT's version. Raises BuildError: BUILDER_MISSING."""
        return f"tensorrt {_version()}"

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        """Return the steps: convert or quantize where needed, then build. Raises BuildError."""
        source = model_file(job.model, job.request.filename)
        settings = _settings(job)
        if not settings.conversion:
            return [Phase("build", 1, _build(job, settings, lambda _: source))]
        convert = _quantize if settings.conversion in ("int8", "fp8") else _convert
        name = "quantize" if settings.conversion in ("int8", "fp8") else "convert"
        return [
            Phase(name, 1, convert(job, settings, source)),
            Phase("build", 4, _build(job, settings, lambda workspace: workspace.finished[name] / _ONNX)),
        ]

    def check(self, job: BuildJob, folder: Path) -> None:
        """Compare the plan with the request. Raises BuildError."""
        settings = _settings(job)
        _call(
            job,
            "checking:check",
            folder=str(folder),
            precision=job.request.precision,
            attributes=dict(settings.attributes),
            outputs=[output.name for output in job.request.outputs],
            host_code="VERSION_COMPATIBLE" in settings.flags,
        )

    def shape(self, job: BuildJob) -> ModelShape | None:
        """Return None, since an ONNX file does not contain the shape."""
        return None

    def runner(self, folder: Path, request: BuildRequest) -> AbstractContextManager[Runner]:
        """Open the plan or the ONNX file of the folder. Raises BuildError."""
        from .running import runner

        return runner(folder, request)


def _version() -> str:
    if find_spec("tensorrt") is None:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            "engine.builder: tensorrt needs the package tensorrt, which this image has not: pip install "
            "'argosy[tensorrt]', or set engine.image to an image that has it",
        )
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    import tensorrt

    return str(tensorrt.__version__)


def _settings(job: BuildJob) -> Settings:
    quantized = is_quantized(model_file(job.model, job.request.filename))
    return settings_of(job.request, int(_version().split(".")[0]), quantized)


def _build(job: BuildJob, settings: Settings, source: Callable[[Workspace], Path]) -> Callable[[Workspace], None]:
    request = job.request

    def run(workspace: Workspace) -> None:
        timings = str(job.shared / _CACHE) if job.shared is not None and settings.timing_cache else ""
        _call(
            job,
            "building:build",
            source=str(source(workspace)),
            target=str(workspace.out),
            settings=settings.arguments(),
            architecture=request.architecture,
            inputs=_declared(request),
            max_batch_size=request.max_batch_size,
            batch_sizes=list(request.batch_sizes),
            data=str(job.calibration or ""),
            samples=request.calibration_samples,
            timings=timings,
        )

    return run


def _convert(job: BuildJob, settings: Settings, source: Path) -> Callable[[Workspace], None]:
    def run(workspace: Workspace) -> None:
        target = str(workspace.out / _ONNX)
        _call(job, "converting:convert", source=str(source), target=target, precision=settings.conversion)

    return run


def _quantize(job: BuildJob, settings: Settings, source: Path) -> Callable[[Workspace], None]:
    def run(workspace: Workspace) -> None:
        _call(
            job,
            "converting:quantize",
            source=str(source),
            target=str(workspace.out / _ONNX),
            precision=settings.conversion,
            data=str(job.calibration),
            samples=job.request.calibration_samples,
            inputs=_declared(job.request),
        )

    return run


def _declared(request: BuildRequest) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(tensor.name, tensor.data_type, tensor.dims) for tensor in request.inputs]


def _call(job: BuildJob, function: str, **arguments: Any) -> None:
    call(f"{__package__}.{function}", arguments, job.progress, causes=CAUSES)


__all__ = ["TensorRtBuilder"]
