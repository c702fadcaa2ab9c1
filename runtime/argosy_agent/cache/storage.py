"""Fetches copies into a cache, each once and whole."""

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
from argosy_agent.transfer.stores.local import Places, found
from argosy_agent.transfer.stores.schemes import source_of
from argosy_agent.transfer.stores.settings import Settings
from argosy_agent.transfer.stores.source import Source

from .copies import Cache
from .origins import Origin, Origins
from .owners import Owner
from .partials import Partial, Partials
from .refusals import Refusals

PVC_ROOT, SECRETS, NAMED_SECRETS = Path("/pvc"), Path("/secrets/storage"), Path("/secrets/named")
WAIT_S = 0.2


class Storage:
    """Copies of model files in one cache folder. Its methods block, and any thread may call them.

    `size_limit` bounds the cache, in bytes; without it nothing is evicted until the disk is full. `pvc_root` is
    where claims are mounted, by name; a `file:` URI may name what lies beneath one of `folders`; `secrets` holds the
    files of the pool's storage Secret, `named_secrets` those of models' own, by name; `identity` tells the pool's
    credentials from those of other pools that share the cache; `part` is how many bytes are read at once in place of
    what suits each kind of storage; `lasting`: what came in vain is left alone for a while by later processes, too, by
    the time `now` gives, in seconds since 1970.
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
        self._places = Places(pvc_root, tuple(folders))
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
        """Return the name of the copy that this URI means now, by the credentials of `secret` if given.

        Of `file:` and `pvc:` it is another when a name, size or time below changes; of all others it is the URI's, the
        digest's and the credentials': what some may read is no copy for others. A Secret counts by its name, so that a
        key that is rotated fetches nothing. Without a digest it is the version's, too, where one is given: a new one
        may mean other bytes at the same URI. Raises StorageError where a `file:` or `pvc:` is not there.
        """
        if _is_local(uri):
            files = (f"{each.name}\0{each.size}\0{each.changed_ns}" for each in found(uri, self._places))
            return _key("file", uri, digest, *files)
        owner = f"secret {secret}" if secret else f"pool {self._identity}"
        return _key("remote", uri, digest, owner, *([f"version {version}"] if version and not digest else []))

    def whole(self, key: str) -> Path | None:
        """Return a copy that is here whole, by its key; nothing is waited for. None where it is not. Raises OSError."""
        return self._cache.take(key)

    def digests(self, keys: Collection[str]) -> dict[str, str]:
        """Return what is told of the content of these copies, by key: see `Origin.digest`."""
        return {key: digest for key in keys if (digest := self._origins.of(key).digest)}

    def fetch(
        self,
        uri: str,
        digest: str = "",
        progress: Progress = lambda done, total: None,
        secret: str = "",
        version: int = 0,
    ) -> Path:
        """Return the folder with the files of `uri`, fetched if it is not here yet, by the credentials of `secret` if
        given.

        A URI of one file becomes a folder that holds it; of an archive, what it holds. What passes is tried again;
        what came before a failure or a stop is kept, and the next call goes on from there.
        Raises StorageError, DigestMismatchError, StorageStoppedError.
        """
        key = self.key(uri, digest, secret, version)
        try:
            with self._alone(key):
                return self._cache.take(key) or self._fetch_anew(_Wish(key, uri, digest, secret, version), progress)
        except OSError as error:
            if is_full(error):
                self._cache.free()
                raise self._full(uri) from error
            raise StorageError(f"{shown(uri)} cannot be fetched: {reason(error)} ({error.filename})") from error

    def keep(self, keys: Collection[str]) -> None:
        """The copies that are served or wanted: they are not evicted. Call it whenever that changes.

        Copies of `file:` and `pvc:` folders that nobody keeps are dropped; what came from afar stays for the next
        time, until its room is needed. What was fetched since the last call stays as well.
        """
        self._cache.keep(keys)

    def stop(self) -> None:
        """Make every copy under way raise StorageStoppedError soon."""
        self._stopped.set()

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """One thread per copy; the others wait for it."""
        lock = self._locks.setdefault(key, threading.Lock())
        while not lock.acquire(timeout=WAIT_S):
            self._check_stopped()
        try:
            yield
        finally:
            lock.release()

    def _fetch_anew(self, wish: "_Wish", progress: Progress) -> Path:
        """Fetch it, unless it came in vain a short while ago."""
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
        with source_of(wish.uri, self._places, self._settings(wish.secret)) as source:
            origin, is_whole = flow.persist(lambda: self._bring(source, partial, wish, flow))
            if is_whole:
                return origin
            partial.seal()
            try:
                source.assemble(partial.files, self._budget(wish))
                _verify(partial.files, source, wish)
                unpack(partial.files, self._budget(wish))
            except BROKEN as error:
                raise UnusableError(f"{shown(wish.uri)} cannot be unpacked: {reason(error)}") from error
        size = sum(path.stat().st_size for path in partial.files.rglob("*") if path.is_file())
        self._cache.make_room(wish.key, size, size, shown(wish.uri))
        if self.key(wish.uri, wish.digest, wish.secret, wish.version) != wish.key:
            raise StorageError(f"{wish.uri} changed while it was copied; it is taken again when it stands still")
        return origin

    def _has_linked(self, partial: Partial, origin: Origin) -> bool:
        """Make the partial copy whole from one that holds the same, if there is one: its bytes are there once."""
        return any((copy := self._cache.take(key)) and partial.link(copy) for key in self._origins.alike(origin))

    def _budget(self, wish: "_Wish") -> Budget:
        """Room in the cache for bytes that nobody has counted before. It is a TooLargeError where they find none."""

        def ask(size: int, here: int) -> None:
            try:
                self._cache.make_room(wish.key, size, here, shown(wish.uri))
            except StorageError as error:
                raise TooLargeError(str(error)) from error

        return Budget(ask)

    def _settings(self, secret: str) -> Settings:
        pools = Settings.of_process(self._secrets)  # which authorities are trusted is said there for all
        return Settings.of_secret(self._named_secrets / secret) if secret else pools

    def _bring(self, source: Source, partial: Partial, wish: "_Wish", flow: Flow) -> tuple[Origin, bool]:
        """One listing, and its files. Return where they came from, and whether the copy is whole: nothing is fetched
        that another version's copy holds. Raises TransientError where they change meanwhile.
        """
        files = flow.persist(source.files)
        place = "" if wish.digest or _is_local(wish.uri) else self.key(wish.uri, "", wish.secret)
        origin = Origin.of(place, files, wish.digest or source.digest)
        if wish.version and place and self._has_linked(partial, origin):
            return origin, True
        size = sum(file.size or 0 for file in files)
        self._cache.make_room(wish.key, size, partial.journal.size, shown(wish.uri))
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
    """What one fetch is for."""

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
    """Raises DigestMismatchError where the files are not those that were declared."""
    if wish.digest in ("", source.digest):
        return
    found = digest_of(folder)
    if wish.digest != found:
        raise DigestMismatchError(
            f"{shown(wish.uri)}: its digest is {found}, not the declared {wish.digest}; is it another version?"
        )
