"""What compiles on this machine: there is no image, so an engine is told apart by the packages that are installed."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("argosy", "onnxruntime", "torch", "tensorrt", "tensorrt_llm")


@cache
def installed_compilers() -> str:
    """In place of an image: `local: argosy 0.1.0, onnxruntime 1.31.1, …`. Another version builds again."""
    return "local: " + ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
