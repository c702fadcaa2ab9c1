"""The table of inference servers: the backends of each, and which of its images has a backend."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from argosy.api import Fault, InferenceModel, Reason, ServingPool
from argosy.api.model.footprint import Device
from argosy.api.model.modelformat import TREES
from argosy.api.servingpool import RuntimeName
from argosy.planning.validation.language import engine_faults


class TritonImage(StrEnum):
    """An image of NVIDIA's server, by the suffix of its tag, as in `26.07-vllm-python-py3`."""

    STANDARD = "py3"
    VLLM = "vllm-python-py3"
    TENSORRT_LLM = "trtllm-python-py3"


class BundledImage(StrEnum):
    """An image of the bundled server, by its target in the Dockerfile: the suffix of its tag, as in `0.1.0-vllm`.

    The tag of `cpu` has none.
    """

    CPU = "cpu"
    CUDA = "cuda"
    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"


BUNDLED = frozenset({"fil", "onnxruntime", "pytorch", "python", "tensorrt", "tensorrtllm", "transformers", "vllm"})
"""The backends of the bundled server, as `argosy_runtime.backends` names them."""
_ON_CUDA = frozenset({"fil", "onnxruntime", "pytorch", "python", "tensorrt", "transformers"})
BUNDLED_IMAGES: Mapping[BundledImage, frozenset[str]] = {
    BundledImage.CPU: frozenset({"fil", "onnxruntime", "python"}),
    BundledImage.CUDA: _ON_CUDA,
    BundledImage.VLLM: _ON_CUDA | {"vllm"},
    BundledImage.TENSORRT_LLM: frozenset({"onnxruntime", "python", "tensorrt", "tensorrtllm"}),
}
"""The backends in each of the bundled server's images; where several will do, the first."""
TRITON_IMAGES: Mapping[TritonImage, frozenset[str]] = {
    TritonImage.STANDARD: frozenset({"fil", "onnxruntime", "pytorch", "python", "tensorrt"}),
    TritonImage.VLLM: frozenset({"python", "vllm"}),
    TritonImage.TENSORRT_LLM: frozenset({"python", "tensorrtllm"}),
}
"""The backends in each of NVIDIA's images that Argosy has a model format for; where several will do, the first."""
RUNTIMES: Mapping[RuntimeName, frozenset[str]] = {
    RuntimeName.ARGOSY: BUNDLED,
    RuntimeName.TRITON: frozenset().union(*TRITON_IMAGES.values()),
}
"""The backends of each runtime."""
_ARTICLES = {RuntimeName.ARGOSY: "the bundled server", RuntimeName.TRITON: "NVIDIA's server"}
_INSTEAD = {
    "transformers": "; or modelFormat vllm, which both servers have, with options of its own",
}

_UNSUPPORTED = Reason.UNSUPPORTED_FORMAT
_REFUSED_CONFIG = frozenset({"model_repository_agents"})
"""What of `spec.config` the bundled server refuses: `argosy_runtime.repository.unsupported`."""

_ENGINELESS = (
    "pytorch makes a checkpoint, which NVIDIA's server cannot open: use a pool with runtime.name argosy, or leave "
    "backend out for an engine"
)


_Image = TypeVar("_Image", TritonImage, BundledImage)


@dataclass(frozen=True, slots=True)
class Choice(Generic[_Image]):
    """The image that a pool's models need, and the models that it leaves out, each with why."""

    image: _Image
    refused: Mapping[str, str]


def check_runtimes(pool: ServingPool, models: Iterable[InferenceModel]) -> Iterator[tuple[InferenceModel, Fault]]:
    """Yield the models of a pool that its runtime cannot run, in that of its images that the others need."""
    runtime, runnable = pool.spec.runtime, []
    for model in models:
        if runtime.name is RuntimeName.TRITON and _makes_checkpoint(model):
            yield model, Fault(_ENGINELESS, ("spec", "engine", "options", "backend"), Reason.UNSUPPORTED_FORMAT)
        elif model.spec.backend in RUNTIMES[runtime.name]:
            runnable.append(model)
            if runtime.name is RuntimeName.ARGOSY:
                yield from ((model, fault) for fault in (*_not_loaded(model), *engine_faults(model)))
        else:
            yield model, _fault(model, _not_run(model, pool))
    if runtime.image is None:
        choose = choose_triton_image if runtime.name is RuntimeName.TRITON else choose_bundled_image
        refused = choose(pool, runnable).refused
        yield from ((model, _fault(model, refused[model.identity])) for model in runnable if model.identity in refused)


def _makes_checkpoint(model: InferenceModel) -> bool:
    """Return whether a model's build makes a checkpoint for TensorRT-LLM's PyTorch backend instead of an engine."""
    return model.spec.engine is not None and model.spec.engine.options.get("backend") == "pytorch"


def _not_loaded(model: InferenceModel) -> Iterator[Fault]:
    """Yield the settings that the bundled server refuses to load a model with."""
    if model.spec.backend == TREES and model.spec.device is Device.GPU:
        message = "the bundled server computes trees on CPUs: use a pool with runtime.name triton, or make device CPU"
        yield Fault(message, ("spec", "footprint", "device"), _UNSUPPORTED)
    out = "use a pool with runtime.name triton, or leave it out"
    for field in sorted(_REFUSED_CONFIG & model.spec.config.keys()):
        if model.spec.config[field] not in ([], {}, {"enable": False}):
            yield Fault(f"the bundled server loads no model with it: {out}", ("spec", "config", field), _UNSUPPORTED)


def choose_triton_image(pool: ServingPool, models: Iterable[InferenceModel]) -> Choice[TritonImage]:
    """Return the image for a pool with NVIDIA's server. Older models come first.

    A model whose backend no image has together with theirs is left out, so that it changes nothing for what serves.
    """
    return _chosen(TRITON_IMAGES, models, pool, lambda image: f"NVIDIA's image …-{image}")


def choose_bundled_image(pool: ServingPool, models: Iterable[InferenceModel]) -> Choice[BundledImage]:
    """Return the image for a pool with the bundled server, as `choose_triton_image` does for NVIDIA's."""
    return _chosen(BUNDLED_IMAGES, models, pool, lambda image: f"the bundled server's image of the target {image}")


def _chosen(
    table: Mapping[_Image, frozenset[str]],
    models: Iterable[InferenceModel],
    pool: ServingPool,
    named: Callable[[_Image], str],
) -> Choice[_Image]:
    """Return the first image of a table that has the backends of all models, but those that no image has with theirs.

    `named`: an image in words.
    """
    left, first = list(table), dict[_Image, InferenceModel]()
    refused: dict[str, str] = {}
    for model in sorted(models, key=lambda model: (model.metadata.creation_timestamp or "~", model.name)):
        having = [image for image in left if model.spec.backend in table[image]]
        for image in set(left) - set(having) if having else ():
            first.setdefault(image, model)
        if having:
            left = having
            continue
        able = next((image for image, backends in table.items() if model.spec.backend in backends), None)
        if able is not None:
            refused[model.identity] = _no_image(model, pool, named(able), first[able])
    return Choice(left[0], refused)


def _not_run(model: InferenceModel, pool: ServingPool) -> str:
    backend, name = model.spec.backend, pool.spec.runtime.name
    others = [other for other in RUNTIMES if backend in RUNTIMES[other]]
    formats = (
        f"{_named(model)} needs the backend {backend}, which {_ARTICLES[name]} of pool {pool.name!r} does not have"
    )
    return f"{formats}: use a pool with runtime.name {' or '.join(others)}{_INSTEAD.get(backend, '')}"


def _no_image(model: InferenceModel, pool: ServingPool, image: str, other: InferenceModel) -> str:
    """Return why no image suits a model: `image` has its backend, but not that of the `other` model."""
    return (
        f"{_named(model)} needs {image}, which does not have the backend {other.spec.backend} of "
        f"{other.name!r} in pool {pool.name!r}: put one of the two into a pool of its own, or give the pool an image "
        "with both backends (spec.runtime.image)"
    )


def _named(model: InferenceModel) -> str:
    engine = model.spec.engine
    return f"an engine of {engine.builder}" if engine else f"format {model.spec.model_format.name!r}"


def _fault(model: InferenceModel, message: str) -> Fault:
    path = ("spec", "engine", "builder") if model.spec.engine else ("spec", "modelFormat", "name")
    return Fault(message, path, Reason.UNSUPPORTED_FORMAT)
