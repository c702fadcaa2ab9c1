"""Fetching copies into a cache, each once and complete."""

import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from argosy_agent.transfer.archives import BROKEN, unpack
from argosy_agent.transfer.beneath import EVERYWHERE
from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.download import Download
from argosy_agent.transfer.errors import (
    ChangedError,
    DigestMismatchError,
    StorageError,
    StorageStoppedError,
    TooLargeError,
    TransientError,
    UnusableError,
    is_full,
    reason,
    shown,
)
from argosy_agent.transfer.flow import Flow, Progress, Retry
from argosy_agent.transfer.localfiles import digest_of, is_file
from argosy_agent.transfer.stores.local import Roots, local_files_of
from argosy_agent.transfer.stores.schemes import source_of
from argosy_agent.transfer.stores.settings import Settings
from argosy_agent.transfer.stores.source import Source

from .entries import Cache
from .origins import Origin, Origins
from .owners import Owner
from .partials import Partial, Partials
from .refusals import Refusals

PVC_ROOT, SECRETS, NAMED_SECRETS = Path("/pvc"), Path("/secrets/storage"), Path("/secrets/named")
WAIT_S = 0.2


class Storage:
    """Copies of model files in one cache folder. Its methods block, and any thread may call them.

    `size_limit` bounds the cache, in bytes; without it nothing is evicted until the disk is full. `pvc_root`: the
    folder where claims are mounted, by name; `folders`: those that a `file:` URI may point into; `secrets`: the folder
    of the pool's storage Secret; `named_secrets`: those of models' own Secrets, by name; `identity` distinguishes the
    pool's credentials from those of other pools that share the cache; `part`: the bytes per read, instead of the
    default of each kind of storage; `lasting`: later processes also wait before they retry a failed fetch, by the time
    that `now` returns, in seconds since 1970.
    """

    def __init__(
        self,
        cache: Path,
        size_limit: int | None = None,
        *,
        pvc_root: Path = PVC_ROOT,
        folders: Sequence[Path] = (EVERYWHERE,),
        secrets: Path = SECRETS,
        named_secrets: Path = NAMED_SECRETS,
        identity: str = "",
        retry: Retry = Retry(),  # noqa: B008  # frozen
        part: int | None = None,
        lasting: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._retry, self._part = cache, retry, part
        self._roots = Roots(pvc_root, tuple(folders))
        self._secrets, self._named_secrets, self._identity = secrets, named_secrets, identity
        cache.mkdir(parents=True, exist_ok=True)
        self._lasting, self._now, self._refusals = lasting, now, Refusals(cache, size_limit)
        self._stopped = threading.Event()
        self._locks: dict[str, threading.Lock] = {}
        owner = Owner.mine()
        self._partials = Partials(cache, owner)
        self._cache, self._origins = Cache(cache, size_limit, owner, self._partials), Origins(cache)
        with suppress(OSError):
            self._partials.sweep()
            self._refusals.sweep(now())
            self._origins.sweep()
            for left in cache.glob(".gone-*"):
                shutil.rmtree(left, ignore_errors=True)

    def key(self, uri: str, digest: str = "", secret: str = "", version: int = 0) -> str:
        """Return the name of the copy that this URI means now, with the credentials of `secret` if there is one.

        For `file:` and `pvc:` it changes with a name, size or time below; for all others it is made of the URI, the
        digest and the credentials: what some may read is no copy for others. A Secret counts by its name, so that a
        rotated key fetches nothing. Without a digest it is made of the version, too, where there is one: a new version
        may mean other bytes at the same URI. Raises StorageError where a `file:` or `pvc:` is not there.
        """
        if _is_local(uri):
            files = (f"{file.name}\0{file.size}\0{file.changed_ns}" for file in local_files_of(uri, self._roots))
            return _key("file", uri, digest, *files)
        owner = f"secret {secret}" if secret else f"pool {self._identity}"
        return _key("remote", uri, digest, owner, *([f"version {version}"] if version and not digest else []))

    def cached(self, key: str) -> Path | None:
        """Return a copy that is here and complete, by its key; None where it is not. Never waits. Raises OSError."""
        return self._cache.take(key)

    def digests(self, keys: Collection[str]) -> dict[str, str]:
        """Return the digests of the contents of these copies, by key, as `Origin.digest` has them."""
        return {key: digest for key in keys if (digest := self._origins.of(key).digest)}

    def fetch(
        self,
        uri: str,
        digest: str = "",
        progress: Progress = lambda done, total: None,
        secret: str = "",
        version: int = 0,
    ) -> Path:
        """Return the folder with the files of `uri`, fetched if it is not here yet, with the credentials of `secret` if
        there is one.

        A URI of one file becomes a folder that holds it; of an archive, its contents. Transient errors are tried again;
        the bytes before a failure or a stop are retained, and the next call resumes there. Raises StorageError,
        DigestMismatchError, StorageStoppedError.
        """
        key = self.key(uri, digest, secret, version)
        try:
            with self._alone(key):
                return self._cache.take(key) or self._fetch_unless_refused(
                    _Wish(key, uri, digest, secret, version), progress
                )
        except OSError as error:
            if is_full(error):
                self._cache.free()
                raise self._full(uri) from error
            raise StorageError(f"{shown(uri)} cannot be fetched: {reason(error)} ({error.filename})") from error

    def keep(self, keys: Collection[str]) -> None:
        """Retain these copies, which are served or desired, from eviction. Call it whenever that changes.

        Copies of `file:` and `pvc:` folders that no agent retains are dropped; remote copies stay for the next time
        until their space is needed. Copies that were fetched since the last call stay as well.
        """
        self._cache.keep(keys)

    def stop(self) -> None:
        """Make every fetch raise StorageStoppedError soon."""
        self._stopped.set()

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Let one thread at a time fetch a copy; the others wait for it."""
        lock = self._locks.setdefault(key, threading.Lock())
        while not lock.acquire(timeout=WAIT_S):
            self._check_stopped()
        try:
            yield
        finally:
            lock.release()

    def _fetch_unless_refused(self, wish: "_Wish", progress: Progress) -> Path:
        """Fetch a copy, unless an earlier fetch was in vain a short while ago."""
        if not self._lasting:
            return self._fetch(wish, progress)
        self._refusals.check(wish.key, self._now())
        try:
            copy = self._fetch(wish, progress)
        except (UnusableError, TooLargeError) as error:
            self._refusals.note(wish.key, error, self._now())
            raise
        self._refusals.forget(wish.key)
        return copy

    def _fetch(self, wish: "_Wish", progress: Progress) -> Path:
        target = self._folder / wish.key
        with self._cache.fetching(wish.key), self._partials.claim(wish.key, self._wait) as partial:
            if partial is not None:
                try:
                    flow = Flow(progress, self._stopped, self._retry, self._budget(wish))
                    origin = self._fill(partial, wish, flow)
                    partial.publish(target)
                    self._origins.note(wish.key, origin)
                except OSError as error:
                    if is_full(error):
                        partial.seal()
                    raise
        return self._cache.take(wish.key) or target

    def _fill(self, partial: Partial, wish: "_Wish", flow: Flow) -> Origin:
        with source_of(wish.uri, self._roots, self._settings(wish.secret)) as source:
            origin, complete = flow.persist(lambda: self._bring(source, partial, wish, flow))
            if complete:
                return origin
            partial.seal()
            try:
                source.assemble(partial.files, self._budget(wish))
                _verify(partial.files, source, wish)
                unpack(partial.files, self._budget(wish))
            except BROKEN as error:
                raise UnusableError(f"{shown(wish.uri)} cannot be unpacked: {reason(error)}") from error
        size = sum(path.stat().st_size for path in partial.files.rglob("*") if path.is_file())
        self._cache.ensure_space(wish.key, size, size, shown(wish.uri))
        if self.key(wish.uri, wish.digest, wish.secret, wish.version) != wish.key:
            raise StorageError(f"{wish.uri} changed while it was copied; it is taken again when it stands still")
        return origin

    def _has_linked(self, partial: Partial, origin: Origin) -> bool:
        """Return whether the partial copy was completed by links to one with the same content."""
        return any((copy := self._cache.take(key)) and partial.link(copy) for key in self._origins.alike(origin))

    def _budget(self, wish: "_Wish") -> Budget:
        """Return a budget that frees cache space for bytes that were not counted before; it raises TooLargeError."""

        def ask(size: int, here: int) -> None:
            try:
                self._cache.ensure_space(wish.key, size, here, shown(wish.uri))
            except StorageError as error:
                raise TooLargeError(str(error)) from error

        return Budget(ask)

    def _settings(self, secret: str) -> Settings:
        pools = Settings.of_process(self._secrets)  # which authorities are trusted is said there for all
        return Settings.of_secret(self._named_secrets / secret) if secret else pools

    def _bring(self, source: Source, partial: Partial, wish: "_Wish", flow: Flow) -> tuple[Origin, bool]:
        """List the source once and fetch its files. Return their origin, and whether the copy is complete.

        Nothing is fetched that another version's copy has. Raises TransientError where the files change meanwhile.
        """
        files = flow.persist(source.files)
        location = "" if wish.digest or _is_local(wish.uri) else self.key(wish.uri, "", wish.secret)
        origin = Origin.of(location, files, wish.digest or source.digest)
        if wish.version and location and self._has_linked(partial, origin):
            return origin, True
        size = sum(file.size or 0 for file in files)
        self._cache.ensure_space(wish.key, size, partial.journal.size, shown(wish.uri))
        try:
            Download(source, partial.files, partial.journal, flow, self._part or source.part).run(files)
        except ChangedError as error:
            raise TransientError(str(error)) from error
        return origin, False

    def _wait(self) -> None:
        self._check_stopped()
        self._stopped.wait(WAIT_S)

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise StorageStoppedError("stopped")

    def _full(self, uri: str) -> StorageError:
        return StorageError(
            f"{shown(uri)} cannot be fetched: the disk of the model cache ({self._folder}) is full; "
            "what had come of it was removed: give the cache a larger disk (spec.storage.modelCache), or serve fewer "
            "models from it"
        )


@dataclass(frozen=True, slots=True)
class _Wish:
    """The subject of one fetch."""

    key: str
    uri: str
    digest: str
    secret: str = ""
    version: int = 0


def _key(kind: str, *parts: str) -> str:
    return f"{kind}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}"


def _is_local(uri: str) -> bool:
    return is_file(uri) or urlsplit(uri).scheme == "pvc"


def _verify(folder: Path, source: Source, wish: _Wish) -> None:
    """Raise DigestMismatchError if the files do not match the declared digest."""
    if wish.digest in ("", source.digest):
        return
    digest = digest_of(folder)
    if wish.digest != digest:
        raise DigestMismatchError(
            f"{shown(wish.uri)}: its digest is {digest}, not the declared {wish.digest}; is it another version?"
        )
