"""The sink of each scheme. obstore is imported only where a bucket is written to."""

from pathlib import Path
from urllib.parse import urlsplit

from argosy_agent.transfer.errors import StorageError, shown
from argosy_agent.transfer.stores.local import Roots, root_of
from argosy_agent.transfer.stores.settings import Settings

from .folder import FolderSink
from .sink import FIELD, Sink

FOLDERS, BUCKETS = ("", "file", "pvc"), ("s3", "gs", "az", "abfss")


def sink_of(uri: str, settings: Settings, pvc_root: Path) -> Sink:
    """Return what writes below `uri`. Raises StorageError where nothing can."""
    scheme = urlsplit(uri).scheme
    if scheme in FOLDERS:
        return FolderSink(uri, root_of(uri, Roots(pvc_root))[0])
    if scheme in BUCKETS:
        from .bucket import BucketSink

        return BucketSink(uri, settings)
    kinds = ", ".join(scheme for scheme in (*BUCKETS, *FOLDERS) if scheme)
    raise StorageError(f"{shown(uri)} cannot be written to: {FIELD} is one of {kinds}")
