"""Which source reads which scheme. Clients of one scheme are imported only where it is used."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from .errors import StorageError
from .local import LocalSource
from .source import Source

Opener = Callable[[str, Path, Path], Source]


def source_of(uri: str, pvc_root: Path, secrets: Path) -> Source:
    """The source that reads `uri`. Raises StorageError where none does."""
    opener = OPENERS.get(urlsplit(uri).scheme)
    if opener is None:
        raise StorageError(f"{uri}: no storage is called so; one of {', '.join(s for s in OPENERS if s)} is")
    return opener(uri, pvc_root, secrets)


def _local(uri: str, pvc_root: Path, secrets: Path) -> Source:
    return LocalSource(uri, pvc_root)


def _objects(uri: str, pvc_root: Path, secrets: Path) -> Source:
    from .objects import ObjectSource

    return ObjectSource(uri)


def _web(uri: str, pvc_root: Path, secrets: Path) -> Source:
    from .web import WebSource

    return WebSource(uri)


def _hub(uri: str, pvc_root: Path, secrets: Path) -> Source:
    from .hub import HubSource

    return HubSource(uri)


def _registry(uri: str, pvc_root: Path, secrets: Path) -> Source:
    from .registry import RegistrySource

    return RegistrySource(uri, secrets)


OPENERS: dict[str, Opener] = {
    "": _local,
    "file": _local,
    "pvc": _local,
    "s3": _objects,
    "gs": _objects,
    "http": _web,
    "https": _web,
    "hf": _hub,
    "oci": _registry,
}
