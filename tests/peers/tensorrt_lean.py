"""The lean runtime of TensorRT from PyPI: the real bindings of the classes that load and run plans, without a GPU."""

from pathlib import Path

from tests.peers.cache import installed, unpack_wheel

RELEASES = {"10.16.1.11": "cu12", "11.4.0.106": "cu13"}
"""Releases, each with the CUDA that its wheels are of."""


def tensorrt_lean(release: str) -> Path:
    """Return a folder in which `tensorrt_lean_bindings` can be imported. Raises PeerUnavailableError."""
    cuda = RELEASES[release]

    def build(folder: Path) -> None:
        for part in ("libs", "bindings"):
            unpack_wheel(f"tensorrt-lean-{cuda}-{part}=={release}", folder)

    return installed(f"tensorrt-lean-{release}", build)
