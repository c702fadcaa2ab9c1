"""Reading back the requested settings from the engine's file."""

from collections.abc import Iterator
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

from .inspecting import Inspection, inspected
from .settings import Settings


def check(settings: Settings, source: Path, engine: Path) -> None:
    """Raise BuildError (ENGINE_DIFFERS) if the engine is not what was requested, or has other inputs or outputs."""
    differences = [*_differences(settings, inspected(source), inspected(engine))]
    if differences:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "; ".join(differences))


def _differences(settings: Settings, before: Inspection, after: Inspection) -> Iterator[str]:
    for side, ours, theirs in (
        ("inputs", before.inputs, after.inputs),
        ("outputs", before.outputs, after.outputs),
    ):
        if list(ours) != list(theirs) or [kind for kind, _ in ours.values()] != [kind for kind, _ in theirs.values()]:
            yield f"the engine's {side} are {_percent(theirs)}, and the model's {_percent(ours)}"
    if settings.mode and not after.integer:
        yield (
            f"engine.precision: int8 was requested, and none of {before.products} products of the model became one of "
            "bytes: see engine.options.op_types_to_quantize and nodes_to_exclude, or leave precision out"
        )
    if settings.mode and not after.share("int8", "uint8"):
        yield "engine.precision: int8 was requested, and no weight of the engine is int8"
    for name in settings.options["nodes_to_exclude"] or ():
        if any(node == name or node.startswith((f"{name}/", f"{name}_quant")) for node in after.quantized):
            yield f"engine.options.nodes_to_exclude: {name} is quantized all the same"
    if settings.half and after.share("float16") <= after.share("float"):
        yield f"engine.precision: fp16 was requested, and {after.share('float16'):.0%} of the weights are float16"


def check_precision(precision: str, model: Inspection) -> None:
    """Raise BuildError where a model cannot be made what `precision` says: it is quantized or 16 bits already."""
    if precision in ("", "fp32") and precision and model.share("float16", "bfloat16"):
        raise _already("fp32", "has weights of 16 bits")
    if precision and precision != "int8" and model.integer:
        raise _already(precision, "is quantized to int8 already")
    if precision == "int8" and model.integer:
        raise _already("int8", "is quantized already")
    if precision == "int8" and not model.share("float"):
        raise _already("int8", "has no weights of fp32")


def _already(precision: str, what: str) -> BuildError:
    return BuildError(
        BuildFailure.UNSUPPORTED_MODEL,
        f"engine.precision: {precision} is made of an fp32 model, and this one {what}; leave precision out, or give "
        "the fp32 model",
    )


def _percent(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {kind}" for name, (kind, _) in tensors.items()) or "none"
