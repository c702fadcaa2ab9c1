"""Engines and stores, as the tests need them."""

from collections.abc import Mapping
from pathlib import Path

from tests.agent.sites import QUICK

from argosy_agent.contract.builds import BuildRequest, DataSource
from argosy_agent.engines.manifest import Manifest, manifest_of
from argosy_agent.engines.store import EngineStore, open_store
from argosy_agent.transfer.stores.settings import Settings

KEY, OTHER = "0123456789abcdef" * 2, "f" * 32
FILES = {"model.onnx": b"weights" * 1000, "sub/config.json": b"{}", "a.txt": b""}
REQUEST = BuildRequest(
    builder="onnxruntime",
    architecture="amd64",
    compiler="image:1",
    store="file:/engines",
    model=DataSource("https://who:secret@host/model?sign=1"),
    precision="int8",
    options={"level": 2},
)


def open_at(uri: str, folder: Path) -> EngineStore:
    """Open the store at `uri`; claims are folders below `folder`/pvc."""
    return open_store(uri, Settings.of_process(folder), folder / "pvc", QUICK)


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Create a folder with these files."""
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder


def listing(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifest(key: str = KEY) -> Manifest:
    """Return the manifest of an engine before it is published."""
    return manifest_of(key, REQUEST, "sha256:ab", "onnxruntime 1.31.1", "2026-01-02T03:04:05Z")
