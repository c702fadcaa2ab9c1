"""All engines of one store."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from argosy_agent.contract.builddocuments import parse_request, request_text, text_of, to_accuracy
from argosy_agent.contract.builds import AccuracyReport, BuildRequest, digest_of
from argosy_agent.contract.fields import DocumentError, document
from argosy_agent.threads import repeated
from argosy_agent.transfer.download import Download
from argosy_agent.transfer.errors import ChangedError, StorageError, TransientError, is_full, reason, shown
from argosy_agent.transfer.flow import Flow, Progress, Retry
from argosy_agent.transfer.journal import Journal
from argosy_agent.transfer.localfiles import digest_of as digest_of_folder
from argosy_agent.transfer.sinks.opening import sink_of
from argosy_agent.transfer.sinks.sink import Sink, Stored
from argosy_agent.transfer.stores.local import Roots
from argosy_agent.transfer.stores.schemes import source_of
from argosy_agent.transfer.stores.settings import Settings

from .artifacts import Artifacts, BrokenArtifactError
from .inventory import LEASES, RETAINED, Half, StoredEngine, below, differences, garbage, halves, last_leased, last_used
from .manifest import Manifest, without_credentials

KEY = re.compile(r"[0-9a-f]{32}")
"""What `engine_key` makes: everything else in a store belongs to others, and is left alone."""
LOOKERS = 8
"""How many keys are looked at at once: each takes several requests."""
LEASE_RENEWED_S, LEASE_S = 300.0, 1800.0
"""How often a build says that it runs, and how long that is believed."""
PHASE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def open_store(
    uri: str,
    settings: Settings,
    pvc_root: Path,
    retry: Retry = Retry(),  # noqa: B008  # frozen
) -> "EngineStore":
    """Return the store at `uri` (spec.storage.engineCache.storageUri). Raises StorageError for an unsuitable URI."""
    return EngineStore(uri, sink_of(uri, settings, pvc_root), settings, pvc_root, retry)


class EngineStore:
    """The engines below `uri`. Its methods block, and any thread may call them.

    Raises StorageError with what a person can do, FullError where no more goes in. What may pass is tried again.
    """

    def __init__(self, uri: str, sink: Sink, settings: Settings, pvc_root: Path, retry: Retry) -> None:
        self.uri = uri.rstrip("/")
        self._sink, self._settings, self._pvc_root, self._retry = sink, settings, pvc_root, retry
        self._stopped = threading.Event()
        self._artifacts = Artifacts(self.uri, sink, self._flow)

    def lookup(self, key: str) -> Manifest | None:
        """Return the engine of this key, all there; None where there is none. Raises BrokenArtifactError."""
        return self._artifacts.lookup(_key(key))

    def publish(
        self, key: str, folder: Path, manifest: Manifest, progress: Progress = lambda done, total: None
    ) -> Manifest:
        """Publish the files of `folder` as the engine of this key.

        Return the engine that is published: where another build was first, its engine.

        Raises BrokenArtifactError where a broken one stands there: `remove` it.
        """
        return self._artifacts.publish(_key(key), folder, manifest, progress)

    def fetch(self, key: str, folder: Path, progress: Progress = lambda done, total: None) -> Manifest:
        """Bring an engine's files into `folder`, which is empty or not there.

        Raises BrokenArtifactError, and OSError where the disk of `folder` is full.
        """
        return self._fetch(_key(key), folder, progress)

    def remove(self, key: str, attempt: str | None = None) -> None:
        """Remove an engine with its accuracies and requests; with `attempt`, only where it is of that attempt.

        What running builds of the same key have written stays.
        """
        self._artifacts.remove(_key(key), attempt)
        if attempt is None:
            for folder in RETAINED:
                self._persist_remove(f"{key}/{folder}")

    @contextmanager
    def leased(self, key: str, renewed_s: float = LEASE_RENEWED_S) -> Iterator[None]:
        """Renew the lease of this key every `renewed_s` seconds, so that `collect` leaves all of it alone.

        A store that does not take a lease is no reason to end a build.
        """
        name = f"{_key(key)}/{LEASES}/{secrets.token_hex(8)}"

        def renew() -> None:
            self._try(lambda: self._keep(name, ""))

        renew()
        try:
            with repeated(renew, renewed_s):
                yield
        finally:
            self._try(lambda: self._persist_remove(name))

    def save_phase(self, key: str, phase: str, folder: Path) -> None:
        """Save the output of a finished phase, for a build of the same key that resumes there.

        Folders that are empty or hidden are not saved.
        """
        path = _phase(key, phase)
        try:
            self._artifacts.publish(path, folder, Manifest(key), lambda done, total: None)
        except BrokenArtifactError as broken:
            self._artifacts.remove(path, broken.attempt)
            self._artifacts.publish(path, folder, Manifest(key), lambda done, total: None)

    def load_phase(self, key: str, phase: str, folder: Path) -> bool:
        """Fetch the output of a finished phase into `folder`. Return False where nothing of use is saved."""
        path = _phase(key, phase)
        try:
            if self._artifacts.read(path) is None:
                return False
            self._fetch(path, folder, lambda done, total: None)
        except BrokenArtifactError as broken:
            self._artifacts.remove(path, broken.attempt)
            return False
        return True

    def drop_phases(self, key: str) -> None:
        """Remove the outputs of phases, as the engine is published."""
        self._persist_remove(f"{_key(key)}/phases")

    def add_accuracy(self, key: str, report: AccuracyReport) -> None:
        """Save an accuracy report of the engine of this key."""
        self._keep(f"{_key(key)}/accuracy/{digest_of(asdict(report))[:20]}.json", text_of(asdict(report)))

    def accuracies(self, key: str) -> tuple[AccuracyReport, ...]:
        """Return the accuracy reports of an engine, from before it was published and later, by time.

        Unreadable ones are skipped.
        """
        reports = []
        if (manifest := self._artifacts.read(_key(key))) and manifest.accuracy:
            reports.append(manifest.accuracy)
        for name, text in self._texts(f"{key}/accuracy"):
            try:
                reports.append(to_accuracy(document(text, name)))
            except DocumentError:
                continue
        return tuple(sorted(reports, key=lambda report: report.at))

    def add_request(self, key: str, request: BuildRequest) -> None:
        """Save that a build requested the engine of this key, and when: it counts as used. Credentials are left out."""
        self._keep(f"{_key(key)}/requests/{request.name}.json", request_text(without_credentials(request)))

    def requests(self, key: str) -> tuple[BuildRequest, ...]:
        """Return the builds that requested an engine. Unreadable ones are skipped."""
        requests = []
        for _, text in self._texts(f"{_key(key)}/requests"):
            try:
                requests.append(parse_request(text))
            except DocumentError:
                continue
        return tuple(requests)

    def keys(self) -> list[str]:
        """Return every key in the store, also of partial contents; other names are skipped."""
        return [name for name in self._flow().persist(self._sink.folders) if KEY.fullmatch(name)]

    def list(self) -> Iterator[Manifest]:
        """Yield every engine that has a manifest which can be read; its files are not looked at."""
        for key in self.keys():
            try:
                manifest = self._artifacts.read(key)
            except BrokenArtifactError:
                continue
            if manifest is not None:
                yield manifest

    def inventory(self) -> Iterator[StoredEngine]:
        """Yield the contents of every key, also broken ones; files are judged by name and size, not read."""
        with ThreadPoolExecutor(LOOKERS, "look") as pool:
            yield from pool.map(self.inspect, self.keys())

    def inspect(self, key: str) -> StoredEngine:
        """Return the contents of one key."""
        try:
            manifest = self._artifacts.read(_key(key))  # before its files are listed: they were there before it
        except BrokenArtifactError as error:
            stored = self._files(key)
            left = halves(key, stored, "")
            return StoredEngine(key, None, error.what, True, (), (), last_used(stored), left, last_leased(stored))
        except StorageError as error:
            return StoredEngine(key, problem=str(error))  # left alone, as it cannot be judged
        stored = self._files(key)
        if manifest is None:
            return StoredEngine(key, halves=halves(key, stored, None), leased_at=last_leased(stored))
        problem = "; ".join(differences(manifest, below(stored, manifest.attempt)))
        return StoredEngine(
            key,
            manifest,
            problem,
            bool(problem),
            self.requests(key),
            self.accuracies(key),
            last_used(stored),
            halves(key, stored, manifest.attempt),
            last_leased(stored),
        )

    def collect(
        self, is_used: Callable[[StoredEngine], bool] | None, before: float, *, remove: bool = True
    ) -> Iterator[StoredEngine | Half]:
        """Remove the garbage of each key, and yield it. Without `remove` it is only yielded."""
        for key in self.keys():
            removable = garbage((self.inspect(key),), is_used, before, time.time() - LEASE_S)
            for engine in removable.engines:
                if remove:
                    self.remove(engine.key)
                yield engine
            for half in removable.halves:
                if remove:
                    self._persist_remove(half.path)
                yield half

    def _files(self, key: str) -> Sequence[Stored]:
        return self._flow().persist(lambda: self._sink.files(key))

    def _fetch(self, path: str, folder: Path, progress: Progress) -> Manifest:
        manifest = self._artifacts.lookup(path)
        if manifest is None:
            raise StorageError(f"{shown(self._artifacts.uri(path))}: there is no engine")
        try:
            if folder.is_dir() and any(folder.iterdir()):
                raise StorageError(f"{folder} holds files already: an engine is fetched into an empty folder")
            self._download(manifest, folder, progress)
            digest = digest_of_folder(folder)
        except OSError as error:
            if is_full(error):
                raise
            raise StorageError(f"{folder} cannot be written: {reason(error)}") from error
        if digest != manifest.digest:
            what = f"its digest is {digest}, not {manifest.digest}"
            raise BrokenArtifactError(shown(self._artifacts.uri(path)), what, manifest.attempt)
        return manifest

    def _download(self, manifest: Manifest, folder: Path, progress: Progress) -> None:
        flow = self._flow(progress)
        folder.mkdir(parents=True, exist_ok=True)
        note = folder.with_name(f".{folder.name}.journal")
        note.unlink(missing_ok=True)
        journal = Journal(note)

        def bring() -> None:
            with source_of(manifest.uri, Roots(self._pvc_root), self._settings) as source:
                files = flow.persist(source.files)
                try:
                    Download(source, folder, journal, flow, source.part, links=False).run(files)
                except ChangedError as error:
                    raise TransientError(str(error)) from error

        try:
            flow.persist(bring)
        finally:
            journal.close()
            note.unlink(missing_ok=True)

    def _texts(self, prefix: str) -> Iterator[tuple[str, str]]:
        for file in self._flow().persist(lambda: self._sink.files(prefix)):
            name = f"{prefix}/{file.name}"
            body = self._flow().persist(partial(self._sink.read, name))
            if body is not None:
                yield name, body.decode(errors="replace")

    def _try(self, work: Callable[[], None]) -> None:
        with suppress(StorageError):
            work()

    def _keep(self, name: str, text: str) -> None:
        self._flow().persist(lambda: self._sink.replace(name, text.encode()))

    def _persist_remove(self, prefix: str) -> None:
        self._flow().persist(lambda: self._sink.remove(prefix))

    def _flow(self, progress: Progress = lambda done, total: None) -> Flow:
        return Flow(progress, self._stopped, self._retry)


def _key(key: str) -> str:
    if not KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no engine's key: engine_key makes them")
    return key


def _phase(key: str, phase: str) -> str:
    if not PHASE.fullmatch(phase):
        raise ValueError(f"{phase!r} is no phase's name: small letters, digits, - and _")
    return f"{_key(key)}/phases/{phase}"
