"""The settings of AOTInductor that a request stands for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import read_options

MARCH = {256: "x86-64-v3", 512: "x86-64-v4"}
"""The compiler's names of processors, by the bits of their vectors."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one build.

    `autocast` is the precision by torch's name, empty for the model's own. `inductor` are the compiler's settings.
    """

    device: str
    autocast: str
    strict: bool
    inductor: Mapping[str, Any]


def settings_of(request: BuildRequest) -> Settings:
    """Return the settings of a build. Raises BuildError, INVALID_OPTIONS, where AOTInductor cannot do it."""
    options = read_options(request)
    on_gpu = request.architecture[:1].isdigit()
    if request.precision == "fp16" and not on_gpu:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"spec.engine.precision: aotinductor makes fp32, bf16 on {request.architecture}, and not fp16; choose one "
            "of them, or another engine.builder",
        )
    inductor = {name: value for name, value in options.items() if name != "strict"}
    width = inductor.pop("cpp.simdlen")
    if request.architecture == "amd64":
        inductor |= {"cpp.simdlen": width, "cpp.march": MARCH[width]}
    return Settings(
        "cuda" if on_gpu else "cpu",
        {"bf16": "bfloat16", "fp16": "float16"}.get(request.precision, ""),
        options["strict"],
        inductor,
    )
