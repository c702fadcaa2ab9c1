"""The builder `onnxruntime`: phases, each a call into a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape
from argosy_builder.contract import BuildError, BuildJob, Phase, Runner, Workspace
from argosy_builder.process import call

from .settings import Settings, settings_of

DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml")
RANGES = "ranges.json"


class OnnxRuntimeBuilder:
    """ONNX in, ONNX out."""

    name = "onnxruntime"

    def compiler(self) -> str:
        """Return ONNX Runtime's version. Raises BuildError: BUILDER_MISSING."""
        for package in ("onnxruntime", "onnx"):
            if find_spec(package) is None:
                raise BuildError(
                    BuildFailure.BUILDER_MISSING,
                    f"engine.builder: onnxruntime needs the package {package}, which this image has not: pip install "
                    "'argosy[onnxruntime,builder]', or set engine.image to an image that has it",
                )
        return f"onnxruntime {_version()}"

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        """Return the steps: convert or quantize, then optimize. Raises BuildError."""
        from .checking import check_precision
        from .files import model_file
        from .inspecting import inspected

        settings = settings_of(job.request)
        source = model_file(job.model, job.request.filename)
        check_precision(job.request.precision, inspected(source))
        name = _output_name(job.request)
        return [*_conversion(job, settings, source, name), _optimization(job, settings, source, name)]

    def check(self, job: BuildJob, folder: Path) -> None:
        """Compare the engine with the request and the model. Raises BuildError."""
        from .checking import check
        from .files import model_file

        name = job.request.filename
        check(settings_of(job.request), model_file(job.model, name), model_file(folder, _output_name(job.request)))

    def shape(self, job: BuildJob) -> ModelShape | None:
        """Return None, since an ONNX file does not contain the shape."""
        return None

    @contextmanager
    def runner(self, folder: Path, request: BuildRequest) -> Iterator[Runner]:
        """Open the ONNX file of the folder. Raises BuildError."""
        from .running import OnnxRunner

        yield OnnxRunner(folder, request)


def _version() -> str:
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    import onnxruntime

    return str(onnxruntime.__version__)


def _output_name(request: BuildRequest) -> str:
    return request.filename if request.filename.endswith(".onnx") else "model.onnx"


def _conversion(job: BuildJob, settings: Settings, source: Path, name: str) -> Sequence[Phase]:
    """Return the phases before the graph is optimized."""
    if settings.half:
        return [Phase("convert", 3, _calling(job, "optimizing:halve", lambda _: source, name))]
    if not settings.mode:
        return ()
    options = dict(settings.options)
    phases = [Phase("prepare", 2, _calling(job, "quantizing:prepare", lambda _: source, name, options=options))]
    if settings.mode == "static":
        phases.append(Phase("calibrate", 6, _calibration(job, options, name)))
    phases.append(Phase("quantize", 2, _quantization(job, settings, source, name)))
    return phases


def _calibration(job: BuildJob, options: dict[str, Any], name: str) -> Callable[[Workspace], None]:
    request = job.request

    def run(workspace: Workspace) -> None:
        _call(
            job,
            "quantizing:calibrate",
            source=str(workspace.finished["prepare"] / name),
            ranges=str(workspace.out / RANGES),
            data=str(job.calibration),
            inputs=[(tensor.name, tensor.data_type, tensor.dims) for tensor in request.inputs],
            count=request.calibration_samples,
            batched=request.max_batch_size > 0,
            options=options,
        )

    return run


def _quantization(job: BuildJob, settings: Settings, model: Path, name: str) -> Callable[[Workspace], None]:
    def run(workspace: Workspace) -> None:
        ranges = str(workspace.finished["calibrate"] / RANGES) if settings.mode == "static" else ""
        _call(
            job,
            "quantizing:quantize",
            model=str(model),
            source=str(workspace.finished["prepare"] / name),
            target=str(workspace.out / name),
            ranges=ranges,
            options=dict(settings.options),
        )

    return run


def _optimization(job: BuildJob, settings: Settings, source: Path, name: str) -> Phase:
    before = "convert" if settings.half else "quantize" if settings.mode else ""
    run = _calling(
        job,
        "optimizing:optimize",
        lambda workspace: workspace.finished[before] / name if before else source,
        name,
        level=settings.level,
        architecture=job.request.architecture,
        providers=list(settings.providers),
    )
    return Phase("optimize", 2, run)


def _calling(
    job: BuildJob, function: str, source: Callable[[Workspace], Path], name: str, **arguments: Any
) -> Callable[[Workspace], None]:
    """Return a phase that makes one file of another."""

    def run(workspace: Workspace) -> None:
        _call(job, function, source=str(source(workspace)), target=str(workspace.out / name), **arguments)

    return run


def _call(job: BuildJob, function: str, **arguments: Any) -> None:
    call(f"{__package__}.{function}", arguments, job.progress)
