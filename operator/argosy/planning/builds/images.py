"""The release's images that build engines where a model names none."""

from dataclasses import dataclass, fields

from argosy.api.engine.engine import Builder


@dataclass(frozen=True, slots=True)
class BuildImages:
    """Images by what they can build: `cuda` and `tensorrt_llm` are `default` where they are empty.

    `default` builds ONNX Runtime's engines for CPUs. `cuda` has torch and TensorRT. On a laptop there are no images:
    `default` has the versions of the installed compilers.
    """

    default: str = ""
    cuda: str = ""
    tensorrt_llm: str = ""

    def of(self, builder: Builder, architecture: str) -> str:
        """Return the image that compiles for an architecture: a compute capability, such as 9.0, or a CPU's name."""
        if builder is Builder.TENSORRT_LLM:
            return self.tensorrt_llm or self.default
        is_on_cpu = builder is Builder.ONNXRUNTIME and not architecture[:1].isdigit()
        return self.default if is_on_cpu else self.cuda or self.default

    def has(self, image: str) -> bool:
        """Return whether an image is one of the release's."""
        return image in [getattr(self, field.name) for field in fields(self)]
