"""One artifact in a store: its files first, its manifest last; looked up, checked, fetched, removed.

A path is the artifact's folder, below the store's URI. Each writer has an attempt's folder of its own, so that two
never write into one, and the manifest, which one writer alone can create, says whose attempt is the artifact.

A store that cannot write "only where there is none" (some S3 clones ignore the condition, some file systems have no
hard links) is recognized by trying it. There the manifest is written where none was just now; of two that do so in the
same instant the later one stands, and neither removes its files: a reader may know of them already. They go with `gc`.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from argosy_agent.contract.fields import DocumentError
from argosy_agent.transfer.archives import is_archive
from argosy_agent.transfer.errors import StorageError, TransientError, UnusableError, reason, shown
from argosy_agent.transfer.flow import Flow, Progress
from argosy_agent.transfer.localfiles import LocalFile, digest_of_hexes, local_files
from argosy_agent.transfer.sinks.sink import Sink, UnconditionalError

from .inventory import MANIFEST, differences
from .manifest import EngineFile, Manifest, NewerFormatError, manifest_text, parse_manifest

log = logging.getLogger(__name__)
FlowOf = Callable[[Progress], Flow]


class BrokenArtifactError(UnusableError):
    """A manifest names files that are not there, or others: `what`, in words.

    `attempt` is that of the files; empty where it cannot be read.
    """

    def __init__(self, uri: str, what: str, attempt: str = "") -> None:
        super().__init__(f"{uri} holds a broken engine: {what}; it is of no use and may be removed")
        self.what, self.attempt = what, attempt


class Artifacts:
    """The artifacts below one URI. Any thread may call it. Raises StorageError."""

    def __init__(self, uri: str, sink: Sink, flow: FlowOf) -> None:
        self._uri, self._sink, self._flow = uri.rstrip("/"), sink, flow
        self._conditional: bool | None = None

    def uri(self, path: str) -> str:
        """Return the URI of a path."""
        return f"{self._uri}/{path}"

    def read(self, path: str) -> Manifest | None:
        """Return the manifest there; its files are not looked at. Raises BrokenArtifactError where it is none."""
        name = f"{path}/{MANIFEST}"
        body = self._flow(_untold).persist(lambda: self._sink.read(name))
        if body is None:
            return None
        try:
            manifest = parse_manifest(body.decode(), self.uri(path))
        except NewerFormatError as error:
            raise StorageError(f"{shown(self.uri(name))}: {error}") from error
        except (DocumentError, UnicodeDecodeError) as error:
            raise self._broken(path, f"{MANIFEST} cannot be read: {error}") from error
        if manifest.key != path.partition("/")[0]:
            raise self._broken(path, f"{MANIFEST} is that of {manifest.key}")
        return manifest

    def lookup(self, path: str) -> Manifest | None:
        """Return the artifact there, with every file it names; None where there is none.

        A file that changed since it was written is read, and held against its digest. Raises BrokenArtifactError.
        """
        manifest = self.read(path)
        if manifest is not None:
            self._check(path, manifest)
        return manifest

    def publish(self, path: str, folder: Path, manifest: Manifest, progress: Progress) -> Manifest:
        """Make the files of `folder` the artifact there, unless there is one. Return the one that is there."""
        if existing := self.lookup(path):
            return existing
        files = _to_publish(folder)
        attempt = secrets.token_hex(8)
        try:
            mine = self._write(path, files, replace(manifest, attempt=attempt), progress)
            return self._win(path, mine)
        except BaseException:
            self._leave(f"{path}/{attempt}")
            raise

    def remove(self, path: str, attempt: str | None = None) -> None:
        """Remove the artifact there; with `attempt` only where it is of that attempt. Its manifest goes first.

        The files of attempts that are under way stay.
        """
        try:
            manifest = self.read(path)
            owner = manifest.attempt if manifest else ""
        except BrokenArtifactError:
            owner = ""
        if attempt is not None and owner != attempt:
            return
        flow = self._flow(_untold)
        for name in (MANIFEST, owner):
            if name:
                flow.persist(partial(self._sink.remove, f"{path}/{name}"))

    def _write(self, path: str, files: list[LocalFile], manifest: Manifest, progress: Progress) -> Manifest:
        """Write the files, and return the manifest with what stands there now."""
        prefix, flow = f"{path}/{manifest.attempt}", self._flow(progress)
        flow.begin(0, sum(file.size for file in files))
        work = [partial(self._send, prefix, file, flow) for file in files]
        hexes = dict(flow.gather(work, self._sink.writers))
        stored = {file.name: file for file in flow.persist(lambda: self._sink.files(prefix))}
        sizes = {file.name: file.size for file in files}
        if sizes != {name: file.size for name, file in stored.items()}:
            raise StorageError(f"{self.uri(prefix)}: what was written is not what stands there; does another write?")
        written = tuple(EngineFile(name, sizes[name], hexes[name], stored[name].mark) for name in sorted(sizes))
        return replace(manifest, files=written, digest=digest_of_hexes(hexes), uri=self.uri(prefix))

    def _send(self, prefix: str, file: LocalFile, flow: Flow) -> tuple[str, str]:
        """Write one file, again where it was cut. Return its name, and the digest of the bytes that were sent."""
        return file.name, flow.persist(lambda: _Sending(flow).write(self._sink, f"{prefix}/{file.name}", file))

    def _win(self, path: str, mine: Manifest) -> Manifest:
        """Write the manifest, unless another writer has. Return the one that stands."""
        name, body = f"{path}/{MANIFEST}", manifest_text(mine).encode()
        flow = self._flow(_untold)
        if self._conditional is None:
            scratch = f"{path}/{mine.attempt}/.conditional"
            self._conditional = flow.persist(lambda: self._sink.is_conditional(scratch))
        if not self._conditional:
            return self._win_unconditionally(path, mine, body)

        def settle() -> Manifest:
            created = self._sink.create(name, body)
            standing = self.read(path)
            if standing is None:
                raise TransientError(f"{self.uri(name)} is being written by another")
            if created and standing.attempt != mine.attempt:
                raise UnconditionalError(f"{self.uri(name)} was written by two")
            return standing

        standing = flow.persist(settle)
        if standing.attempt != mine.attempt:
            self._leave(f"{path}/{mine.attempt}")
        return standing

    def _win_unconditionally(self, path: str, mine: Manifest, body: bytes) -> Manifest:
        log.warning(
            "%s cannot write a file only where there is none: two builds of one engine at once leave files of one of "
            "them behind, which argosy engines gc removes",
            shown(self._uri),
        )
        flow = self._flow(_untold)
        if self.read(path) is None:
            flow.persist(lambda: self._sink.replace(f"{path}/{MANIFEST}", body))
        return self.read(path) or mine

    def _leave(self, prefix: str) -> None:
        """Remove files that no manifest names; where that fails `gc` finds them."""
        try:
            self._sink.remove(prefix)
        except StorageError as error:
            log.warning("%s is left behind: %s", self.uri(prefix), error)

    def _check(self, path: str, manifest: Manifest) -> None:
        prefix = f"{path}/{manifest.attempt}"
        stored = {file.name: file for file in self._flow(_untold).persist(lambda: self._sink.files(prefix))}
        for what in differences(manifest, stored.values()):
            raise self._broken(path, what, manifest.attempt)
        for file in manifest.files:
            if file.mark != stored[file.name].mark and self._sha256(f"{prefix}/{file.name}") != file.sha256:
                raise self._broken(path, f"{file.name} holds other bytes than were published", manifest.attempt)

    def _sha256(self, name: str) -> str:
        def read() -> str:
            digest = hashlib.sha256()
            for chunk in self._sink.chunks(name):
                digest.update(chunk)
            return digest.hexdigest()

        return self._flow(_untold).persist(read)

    def _broken(self, path: str, what: str, attempt: str = "") -> BrokenArtifactError:
        return BrokenArtifactError(shown(self.uri(path)), what, attempt)


class _Sending:
    """One try to write a file: hashes the bytes, and takes back its progress where it fails."""

    def __init__(self, flow: Flow) -> None:
        self._flow, self._digest, self._sent = flow, hashlib.sha256(), 0

    def write(self, sink: Sink, name: str, file: LocalFile) -> str:
        """Return the SHA-256 of what was written."""
        try:
            sink.write(name, file.path, self._going)
        except TransientError:
            self._flow.arrived(-self._sent)
            raise
        return self._digest.hexdigest()

    def _going(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._sent += len(chunk)
        self._flow.arrived(len(chunk))


def _to_publish(folder: Path) -> list[LocalFile]:
    """Return the files of a folder as an agent would list them.

    Raises StorageError where they would not come back alike.
    """
    try:
        files = local_files(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {reason(error)} ({error.filename or folder})") from error
    if not folder.is_dir() or not files:
        raise StorageError(f"{folder} holds no files that could be published")
    if len(files) == 1 and is_archive(files[0].name):
        raise StorageError(f"{folder} holds an archive alone, {files[0].name}, which would be unpacked when fetched")
    for file in files:
        if not file.name.isprintable():
            raise StorageError(f"{folder} holds {file.name!r:.120}: not every store can keep such a name")
    return files


def _untold(done: int, total: int) -> None:
    """Ignore progress."""
