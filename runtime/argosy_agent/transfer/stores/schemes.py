"""The source of each scheme. Clients of a scheme are imported only where it is used."""

from collections.abc import Callable
from urllib.parse import urlsplit

from argosy_agent.transfer.errors import StorageError

from .local import LocalSource, Roots
from .settings import Settings
from .source import Source

Opener = Callable[[str, Roots, Settings], Source]


def source_of(uri: str, roots: Roots, settings: Settings) -> Source:
    """Return the source that reads `uri`. Raises StorageError where none does."""
    opener = OPENERS.get(urlsplit(uri).scheme)
    if opener is None:
        raise StorageError(f"{uri}: no storage is called so; one of {', '.join(s for s in OPENERS if s)} is")
    return opener(uri, roots, settings)


def _local(uri: str, roots: Roots, settings: Settings) -> Source:
    return LocalSource(uri, roots)


def _objects(uri: str, roots: Roots, settings: Settings) -> Source:
    from .objects import ObjectSource

    return ObjectSource(uri, settings)


def _web(uri: str, roots: Roots, settings: Settings) -> Source:
    from .ranged import WebSource

    return WebSource(uri)


def _hub(uri: str, roots: Roots, settings: Settings) -> Source:
    from .hub import HubSource

    return HubSource(uri, settings)


def _registry(uri: str, roots: Roots, settings: Settings) -> Source:
    from .oci.registry import RegistrySource

    return RegistrySource(uri, settings.folder)


OPENERS: dict[str, Opener] = {
    "": _local,
    "file": _local,
    "pvc": _local,
    "s3": _objects,
    "gs": _objects,
    "az": _objects,
    "abfss": _objects,
    "http": _web,
    "https": _web,
    "hf": _hub,
    "oci": _registry,
}
