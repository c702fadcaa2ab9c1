"""The settings of ONNX Runtime that a request stands for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import read_options


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one build.

    `mode` is how the model is quantized: static, dynamic, or not at all (empty); `half`: it is converted to 16 bits.
    `providers` are the execution providers of the requested architecture.
    """

    mode: str
    half: bool
    level: str
    options: Mapping[str, Any]
    providers: tuple[str, ...]


def settings_of(request: BuildRequest) -> Settings:
    """Return the settings of a build. Raises BuildError, INVALID_OPTIONS or CALIBRATION_MISSING."""
    options = read_options(request)
    on_gpu = request.architecture[:1].isdigit()
    if request.precision == "fp16" and not on_gpu:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"spec.engine.precision: onnxruntime computes fp16 on GPUs; on {request.architecture} it would convert "
            "every value to fp32 and back: choose int8 or fp32",
        )
    if not options["activation_type"]:
        # Where bytes are multiplied by unsigned ones (VNNI), signed activations are slower.
        options["activation_type"] = "QUInt8" if request.architecture == "amd64" else "QInt8"
    providers = ("CUDAExecutionProvider", "CPUExecutionProvider") if on_gpu else ("CPUExecutionProvider",)
    mode = _mode(request, options)
    return Settings(mode, request.precision == "fp16", options["graph_optimization_level"], options, providers)


def _mode(request: BuildRequest, options: Mapping[str, Any]) -> str:
    if request.precision != "int8":
        return ""
    return str(options["quantization"] or ("static" if request.calibration.uri else "dynamic"))
