"""The engine read back: that it is what was requested."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.backends.tensorrt import plan as plans
from argosy_runtime.backends.tensorrt.library import trt
from argosy_runtime.backends.tensorrt.signature import Profile, Signature, read_profile, read_signature
from argosy_runtime.errors import ServingError

from .building import PLAN, PROFILES
from .opening import config_of

_WORDS: Final = {
    "fp16": ("FP16", "Half"),
    "bf16": ("BF16", "BFloat16"),
    "int8": ("Int8", "INT8"),
    "fp8": ("FP8",),
}
"""How the engine inspector writes a layer's type; it differs from release to release."""


def check(folder: str, precision: str, attributes: Mapping[str, Any], outputs: list[str], host_code: bool) -> None:
    """Raise BuildError (ENGINE_DIFFERS) where the plan of a folder is not what was requested, or cannot be opened."""
    stream = CudaStream(0)
    try:
        opened = plans.opened(config_of(PLAN, host_code), Path(folder, PLAN), 0, stream.enter)
        requested = json.loads(Path(folder, PROFILES).read_text())
        signature = read_signature(opened.engine)
        differences = [
            *_shapes(opened.engine, signature, requested),
            *_outputs(signature, outputs),
            *_compatibility(opened.engine, attributes),
            *_precision(opened.engine, precision),
        ]
    except ServingError as error:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, f"the plan does not open where it was built: {error}") from error
    finally:
        stream.close()
    if differences:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "; ".join(differences))


def _shapes(engine: Any, signature: Signature, requested: list[dict[str, dict[str, Any]]]) -> Iterator[str]:
    if requested and signature.profiles != len(requested):
        yield f"engine.options.profiles: {len(requested)} were requested, and the engine has {signature.profiles}"
        return
    for index, profile in enumerate(requested):
        made = read_profile(engine, signature, index, str(index))
        yield from _differing(f"engine.options.profiles[{index}]", made, profile)


def _differing(path: str, made: Profile, requested: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for what, ranges in (("shapes", made.shapes), ("values", made.values)):
        for name, triple in requested[what].items():
            there = ranges.get(name)
            if there is None or [list(there.least), list(there.best), list(there.most)] != [list(p) for p in triple]:
                yield f"{path}.{name}: {what} {triple} were requested, and the engine has {there}"


def _outputs(signature: Signature, outputs: list[str]) -> Iterator[str]:
    missing = [name for name in outputs if name not in signature.outputs]
    if missing:
        yield f"spec.outputs: the engine has no {', '.join(missing)}, but {', '.join(signature.outputs)}"


def _compatibility(engine: Any, attributes: Mapping[str, Any]) -> Iterator[str]:
    requested = attributes.get("hardware_compatibility_level", "NONE")
    there = engine.hardware_compatibility_level.name
    if requested != there:
        yield f"engine.options.hardware_compatibility_level: {requested} was requested, and the engine has {there}"


def _precision(engine: Any, precision: str) -> Iterator[str]:
    """Yield an error where no layer has the requested lower precision: TensorRT may choose others where they are
    faster.
    """
    if precision not in _WORDS:
        return
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    layers = json.loads(text).get("Layers", [])
    described = [layer for layer in layers if isinstance(layer, dict)]
    if not described:
        return  # with less than DETAILED there are only names
    if not any(word in _types(layer) for layer in described for word in _WORDS[precision]):
        yield (
            f"engine.precision: {precision} was requested, and none of the engine's {len(described)} layers computes "
            "in it: leave precision out, or give a model that gains by it"
        )


def _types(layer: Mapping[str, Any]) -> str:
    tensors = [*layer.get("Inputs", ()), *layer.get("Outputs", ())]
    types = [str(tensor.get("Format/Datatype", "")) for tensor in tensors if isinstance(tensor, dict)]
    return " ".join([*types, str(layer.get("Precision", ""))])


__all__ = ["check"]
