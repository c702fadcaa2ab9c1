"""What is asked of AOTInductor, read from a request. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import Option, read

OPTIONS: Mapping[str, Option] = {
    "max_autotune": Option(bool, False),
    "freezing": Option(bool, False),
    "coordinate_descent_tuning": Option(bool, False),
    "epilogue_fusion": Option(bool, True),
    "strict": Option(bool, False),
    "cpp.simdlen": Option(int, 256, (256, 512)),
}
MARCH = {256: "x86-64-v3", 512: "x86-64-v4"}
"""What a compiler calls the processors with vectors of so many bits."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One build's. `autocast` is the type of the arithmetic, as torch names it, where it is not the model's own.

    `inductor` are the compiler's settings.
    """

    device: str
    autocast: str
    strict: bool
    inductor: Mapping[str, Any]


def settings_of(request: BuildRequest) -> Settings:
    """Raises BuildError (INVALID_OPTIONS) where AOTInductor cannot do what is asked."""
    options = read(request.options, OPTIONS)
    on_gpu = request.architecture[:1].isdigit()
    precisions = ("", "fp32", "bf16", "fp16") if on_gpu else ("", "fp32", "bf16")
    if request.precision not in precisions:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.precision: aotinductor makes {', '.join(precisions[1:])} on {request.architecture}, and not "
            f"{request.precision}; choose one of them, or another engine.builder",
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
