"""The engine read back: that it is what was asked."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.backends.cuda import CudaStream
from argosy_runtime.backends.tensorrt import plan as plans
from argosy_runtime.backends.tensorrt.library import trt
from argosy_runtime.backends.tensorrt.signature import Profile, Signature, read_profile, read_signature
from argosy_runtime.errors import ServingError

from .building import ASKED, PLAN
from .opening import config_of

_SAID: Final = {
    "fp16": ("FP16", "Half"),
    "bf16": ("BF16", "BFloat16"),
    "int8": ("Int8", "INT8"),
    "fp8": ("FP8",),
}
"""How the engine inspector writes a layer's type; it differs from release to release."""


def check(folder: str, precision: str, attributes: Mapping[str, Any], outputs: list[str], host_code: bool) -> None:
    """Raise BuildError (ENGINE_DIFFERS) where the plan of a folder is not what was asked, or cannot be opened."""
    stream = CudaStream(0)
    try:
        opened = plans.opened(config_of(PLAN, host_code), Path(folder, PLAN), 0, stream.enter)
        asked = json.loads(Path(folder, ASKED).read_text())
        found = read_signature(opened.engine)
        differences = [
            *_shapes(opened.engine, found, asked),
            *_outputs(found, outputs),
            *_compatibility(opened.engine, attributes),
            *_precision(opened.engine, precision),
        ]
    except ServingError as error:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, f"the plan does not open where it was built: {error}") from error
    finally:
        stream.close()
    if differences:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "; ".join(differences))


def _shapes(engine: Any, found: Signature, asked: list[dict[str, dict[str, Any]]]) -> Iterator[str]:
    if asked and found.profiles != len(asked):
        yield f"engine.options.profiles: {len(asked)} were asked, and the engine has {found.profiles}"
        return
    for place, each in enumerate(asked):
        made = read_profile(engine, found, place, str(place))
        yield from _differing(f"engine.options.profiles[{place}]", made, each)


def _differing(path: str, made: Profile, asked: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for what, ranges in (("shapes", made.shapes), ("values", made.values)):
        for name, triple in asked[what].items():
            there = ranges.get(name)
            if there is None or [list(there.least), list(there.best), list(there.most)] != [list(p) for p in triple]:
                yield f"{path}.{name}: {what} {triple} were asked, and the engine has {there}"


def _outputs(found: Signature, outputs: list[str]) -> Iterator[str]:
    missing = [name for name in outputs if name not in found.outputs]
    if missing:
        yield f"spec.outputs: the engine has no {', '.join(missing)}, but {', '.join(found.outputs)}"


def _compatibility(engine: Any, attributes: Mapping[str, Any]) -> Iterator[str]:
    asked = attributes.get("hardware_compatibility_level", "NONE")
    there = engine.hardware_compatibility_level.name
    if asked != there:
        yield f"engine.options.hardware_compatibility_level: {asked} was asked, and the engine has {there}"


def _precision(engine: Any, precision: str) -> Iterator[str]:
    """Of the lower precisions, that some layer has it: TensorRT may choose others where they are faster."""
    if precision not in _SAID:
        return
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    layers = json.loads(text).get("Layers", [])
    described = [layer for layer in layers if isinstance(layer, dict)]
    if not described:
        return  # with less than DETAILED only names are told
    if not any(word in _types(layer) for layer in described for word in _SAID[precision]):
        yield (
            f"engine.precision: {precision} was asked, and none of the engine's {len(described)} layers computes in "
            "it: leave precision out, or give a model that gains by it"
        )


def _types(layer: Mapping[str, Any]) -> str:
    tensors = [*layer.get("Inputs", ()), *layer.get("Outputs", ())]
    said = [str(each.get("Format/Datatype", "")) for each in tensors if isinstance(each, dict)]
    return " ".join([*said, str(layer.get("Precision", ""))])


__all__ = ["check"]
