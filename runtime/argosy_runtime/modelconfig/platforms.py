"""Which platform, backend and file name belong together, in the order in which Triton tries them."""

from dataclasses import dataclass

ENSEMBLE = "ensemble"


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """What one kind of model file implies. `platforms[0]` is filled in; some files may be directories."""

    backend: str
    platforms: tuple[str, ...]
    filename: str
    may_be_directory: bool

    @property
    def platform(self) -> str:
        """The platform filled in where the configuration names none; "" where the backend has none."""
        return self.platforms[0] if self.platforms else ""


AUTOFILLED = (
    ModelFormat("tensorrt", ("tensorrt_plan",), "model.plan", False),
    ModelFormat("onnxruntime", ("onnxruntime_onnx",), "model.onnx", True),
    ModelFormat("openvino", (), "model.xml", True),
    ModelFormat("pytorch", ("pytorch_libtorch", "libtorch"), "model.pt", False),
    ModelFormat("pytorch", ("torch_aoti",), "model.pt2", False),
    ModelFormat("python", (), "model.py", True),
)

# Named by a configuration, never guessed from files: the backend is retired.
NAMED_ONLY = (
    ModelFormat("tensorflow", ("tensorflow_savedmodel",), "model.savedmodel", True),
    ModelFormat("tensorflow", ("tensorflow_graphdef",), "model.graphdef", False),
)

FORMATS = (*NAMED_ONLY, *AUTOFILLED)


def platforms_of(backend: str) -> frozenset[str]:
    """Return every platform a backend may be paired with; empty where any is allowed."""
    return frozenset(platform for row in FORMATS if row.backend == backend for platform in row.platforms)
