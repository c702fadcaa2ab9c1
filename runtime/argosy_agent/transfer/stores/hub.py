"""Models of the Hugging Face Hub: `hf://organization/model[@revision][/path]`.

huggingface_hub lists the files of one commit, to which the revision is resolved once; their bytes are read as any
others over HTTP, so that they resume, stop and report alike. Its own settings hold: HF_TOKEN, HF_ENDPOINT.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from argosy_agent.transfer.errors import DigestMismatchError, StorageError
from argosy_agent.transfer.localfiles import digest_of_file

from .answers import answered, nothing_there, unreached
from .ranged import RangedClient
from .settings import Settings
from .source import Source, StoredFile, safe_name

URI = re.compile(r"hf://(?P<repo>[^/@]+/[^/@]+)(@(?P<revision>refs/(?:pr|convert)/[^/]+|[^/]+))?(/(?P<path>.*))?")
SKIPPED = frozenset({".gitattributes"})


class HubSource(Source):
    """The files of one commit of a repository. Large ones are checked against the SHA-256 that the Hub keeps."""

    part = 128 * 2**20  # the Hub counts requests

    def __init__(self, uri: str, settings: Settings) -> None:
        match = URI.fullmatch(uri)
        if match is None:
            raise StorageError(f"{uri} is not a model of the Hub; write it like hf://organization/model@main")
        self._uri, self._repo = uri, match["repo"]
        self._revision, self._path = unquote(match["revision"] or "main"), unquote(match["path"] or "").strip("/")
        self._hub = _library(uri)
        token = (settings.first("HF_TOKEN") or False) if settings.alone else None  # None: as the library finds it
        self._api = self._hub.HfApi(endpoint=settings.first("HF_ENDPOINT") or None, token=token)
        self._client = RangedClient(uri, lambda: self._hub.utils.build_hf_headers(token=token))
        self._sums: dict[str, str] = {}

    def files(self) -> list[StoredFile]:
        try:
            commit = self._api.repo_info(self._repo, revision=self._revision).sha
            entries = list(self._api.list_repo_tree(self._repo, recursive=True, revision=commit))
        except Exception as error:
            raise _translated(self._uri, error) from error
        files = [file for entry in entries if (file := self._file(entry, commit)) is not None]
        if not files:
            raise nothing_there(self._uri)
        largest = max(files, key=lambda file: file.size or 0)
        ranges = self._client.ranges(largest.path)
        return [replace(file, ranges=ranges) for file in files]

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        return self._client.read(file, file.path, start, end, pinned=True)

    def check(self, file: StoredFile, path: Path) -> None:
        expected = self._sums.get(file.name)
        if expected is not None and (digest := digest_of_file(path)) != f"sha256:{expected}":
            raise DigestMismatchError(f"{self._uri}: {file.name} came with digest {digest}, not sha256:{expected}")

    def close(self) -> None:
        self._client.close()

    def _file(self, entry: Any, commit: str) -> StoredFile | None:
        name = self._below(entry.path)
        if not name or entry.path in SKIPPED or not hasattr(entry, "blob_id"):
            return None
        if entry.lfs is not None:
            self._sums[name] = entry.lfs.sha256
        url = self._hub.hf_hub_url(self._repo, entry.path, revision=commit, endpoint=self._api.endpoint)
        return StoredFile(safe_name(name), entry.size, entry.blob_id, url, etag=entry.blob_id)

    def _below(self, path: str) -> str:
        """Return the path of a file of the repository in the copy; empty where it is left out."""
        if path == self._path:
            return path.rpartition("/")[2]
        return path.removeprefix(f"{self._path}/" if self._path else "") if self._within(path) else ""

    def _within(self, path: str) -> bool:
        return not self._path or path.startswith(f"{self._path}/")


def _library(uri: str) -> Any:
    """Import huggingface_hub, only where it is needed."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise StorageError(f"{uri} needs the package huggingface_hub: pip install huggingface_hub") from error
    return huggingface_hub


def _translated(uri: str, error: Exception) -> StorageError:
    response = getattr(error, "response", None)
    if isinstance(response, httpx.Response) or hasattr(response, "status_code"):
        message = str(error).strip().splitlines()[-1] if str(error).strip() else ""
        return answered(uri, int(getattr(response, "status_code", 0)), message)
    if isinstance(error, httpx.TransportError | OSError) or type(error).__name__ in ("ConnectError", "ReadTimeout"):
        return unreached(uri, str(error) or type(error).__name__)
    return StorageError(f"{uri}: {error}")
