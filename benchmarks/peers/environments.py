"""An environment of its own for each peer, and the ONNX model, kept in the cache."""

import sys
from pathlib import Path

from tests.peers.cache import installed, run, unpack_wheel

MAGIKA = "magika==1.0.3"
COMMON = ("numpy", "onnxruntime")
_INSTALL_SECONDS = 1800.0


def python(name: str, requirements: tuple[str, ...]) -> Path:
    """Return the interpreter that has `requirements`; PeerUnavailableError where it cannot be installed."""

    def build(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)], f"making {name}'s environment")
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*install, *requirements, *COMMON], f"installing {name}", timeout_s=_INSTALL_SECONDS)

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return installed(f"bench-{name}-py{version}", build) / "bin" / "python"


def onnx_model() -> Path:
    """Return a real ONNX classifier of 3 MB: INT32 bytes[1, 2048] to FP32 target_label[1, 214]."""
    folder = installed("magika-1.0.3", lambda folder: unpack_wheel(MAGIKA, folder))
    return next(folder.glob("magika/models/*/model.onnx"))
