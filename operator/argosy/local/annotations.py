"""Annotations that commands set on the resources of a running `argosy up`, in its state folder.

They stand for those that `kubectl annotate` sets in a cluster, where no manifest has them: `argosy up` adds them to
the resources that it reads. Writers take turns by a lock, and replace the file atomically, so that a reader needs none.
"""

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from argosy.api.documents import Resource
from argosy.local.state import StateFolder
from argosy_agent.jsonfiles import read_json, write_json

Annotations = Mapping[str, Mapping[str, str | None]]
"""Values by annotation, by identity. None: the manifest's own value does not count."""


def annotate(folder: StateFolder, identity: str, annotation: str, value: str | None) -> None:
    """Set an annotation of a resource, or remove it. Raises OSError."""
    with _locked(folder):
        current = read_annotations(folder)
        write_json(folder.annotations_file, {**current, identity: {**current.get(identity, {}), annotation: value}})


def read_annotations(folder: StateFolder) -> dict[str, dict[str, str | None]]:
    """Return what commands set. What is no annotation is skipped: people can edit any file."""
    document = read_json(folder.annotations_file) or {}
    return {
        identity: {name: value for name, value in values.items() if value is None or isinstance(value, str)}
        for identity, values in document.items()
        if isinstance(values, dict)
    }


class AnnotationSource:
    """What commands set, as last read: the file is read when it was replaced."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._written: tuple[int, int] | None = None
        self.current: Annotations = {}

    def refresh(self) -> bool:
        """Read the file if it is another one than last time. Return whether it was."""
        try:
            file = self._folder.annotations_file.stat()
        except OSError:
            written = None
        else:
            written = file.st_ino, file.st_mtime_ns
        if written == self._written:
            return False
        self._written = written
        self.current = read_annotations(self._folder)
        return True


def annotated(resources: Iterable[Resource], annotations: Annotations) -> tuple[Resource, ...]:
    """Return the resources with these annotations in addition to, or in place of, those of their manifests."""
    return tuple(_annotated(resource, annotations.get(resource.identity)) for resource in resources)


def _annotated(resource: Resource, values: Mapping[str, str | None] | None) -> Resource:
    if not values:
        return resource
    merged = {**resource.metadata.annotations, **values}
    retained = {name: value for name, value in merged.items() if value is not None}
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update={"annotations": retained})})


@contextmanager
def _locked(folder: StateFolder) -> Iterator[None]:
    folder.requests.mkdir(parents=True, exist_ok=True)
    with (folder.requests / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
