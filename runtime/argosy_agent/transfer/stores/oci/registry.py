"""Artifacts and images of an OCI registry: `oci://registry/repository[:tag][@digest]`.

The layers are the files. One with a title (as `oras push` writes it) is a file of that name; a tar archive without
one is unpacked, later layers over earlier ones, as an image's. Of an index the image of this machine is taken.
"""

import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.errors import DigestMismatchError, StorageError, UnauthorizedError
from argosy_agent.transfer.localfiles import digest_of_file
from argosy_agent.transfer.stores.answers import nothing_there
from argosy_agent.transfer.stores.ranged import RangedClient
from argosy_agent.transfer.stores.source import Source, StoredFile, safe_name

from .layers import lay
from .logins import Login

URI = re.compile(r"oci://(?P<host>[^/]+)/(?P<path>[^:@]+)(:(?P<tag>[^@]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?")
OCI = "application/vnd.oci.image"
DOCKER = "application/vnd.docker.distribution"
INDEXES = (f"{OCI}.index.v1+json", f"{DOCKER}.manifest.list.v2+json")
ACCEPTED = ", ".join((f"{OCI}.manifest.v1+json", f"{DOCKER}.manifest.v2+json", *INDEXES))
TITLES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
UNPACK = "io.deis.oras.content.unpack"
LAYER = ".layer-"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
LARGEST_MANIFEST = 8 * 2**20


class RegistrySource(Source):
    """The layers of one manifest. Every layer is checked against its digest."""

    def __init__(self, uri: str, secrets: Path) -> None:
        match = URI.fullmatch(uri)
        if match is None:
            raise StorageError(f"{uri} is not an artifact; write it like oci://registry.example.com/models/embedder:1")
        self._uri, self._reference = uri, match["digest"] or match["tag"] or "latest"
        self._login = Login(uri, match["host"], match["path"], secrets)
        self._base = f"{self._login.url}/v2/{self._login.repository}"
        self._client = RangedClient(uri, self._login.headers)
        self._layers: list[str] = []

    def files(self) -> list[StoredFile]:
        self.digest = ""  # a tag may have moved since the last listing
        manifest = self._manifest(self._reference)
        layers = manifest.get("layers", [])
        files = [self._file(number, layer) for number, layer in enumerate(layers)]
        if not files:
            raise nothing_there(self._uri)
        largest = max(files, key=lambda file: file.size or 0)
        ranges = self._client.ranges(largest.path)
        self._layers = [file.name for file in files if file.name.startswith(LAYER)]
        return [replace(file, ranges=ranges) for file in {file.name: file for file in files}.values()]

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        used = self._login.headers()
        try:
            yield from self._client.read(file, file.path, start, end, pinned=True)
        except UnauthorizedError:  # a token lasts for minutes, a pull for hours
            self._login.renew(used)
            yield from self._client.read(file, file.path, start, end, pinned=True)

    def check(self, file: StoredFile, path: Path) -> None:
        if (digest := digest_of_file(path)) != file.mark:
            raise DigestMismatchError(f"{self._uri}: the layer {file.name} came with digest {digest}, not {file.mark}")

    def assemble(self, folder: Path, budget: Budget) -> None:
        for name in self._layers:
            lay(folder / name, folder, budget)
            (folder / name).unlink()

    def close(self) -> None:
        self._client.close()
        self._login.close()

    def _manifest(self, reference: str) -> Mapping[str, Any]:
        self._login.begin()
        with self._client.get(f"{self._base}/manifests/{reference}", {"Accept": ACCEPTED}) as response:
            if response.status_code != 200:
                raise self._client.refused(response)
            body = b"".join(_bounded(response.iter_bytes(), self._uri))
            kind = response.headers.get("Content-Type", "").partition(";")[0]
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if reference.startswith("sha256:") and digest != reference:
            raise DigestMismatchError(f"{self._uri}: the registry's manifest has digest {digest}, not {reference}")
        self.digest = self.digest or digest
        manifest = self._parsed(body)
        if kind in INDEXES or "manifests" in manifest:
            return self._manifest(_for_this_machine(manifest.get("manifests", []), self._uri))
        return manifest

    def _parsed(self, body: bytes) -> Mapping[str, Any]:
        try:
            manifest = json.loads(body)
        except ValueError as error:
            raise StorageError(f"{self._uri}: what the registry sent is no manifest") from error
        if not isinstance(manifest, dict):
            raise StorageError(f"{self._uri}: what the registry sent is no manifest")
        return manifest

    def _file(self, number: int, layer: Mapping[str, Any]) -> StoredFile:
        notes = layer.get("annotations") or {}
        title = next((notes[key] for key in TITLES if notes.get(key)), "")
        packed = "tar" in layer.get("mediaType", "") and (not title or notes.get(UNPACK) == "true")
        name = f"{LAYER}{number:03d}" if packed or not title else safe_name(title)
        digest = layer["digest"]
        return StoredFile(name, int(layer["size"]), digest, f"{self._base}/blobs/{digest}", etag=digest)


def _bounded(chunks: Iterator[bytes], uri: str) -> Iterator[bytes]:
    left = LARGEST_MANIFEST
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise StorageError(f"{uri}: what the registry sent is no manifest: it is larger than any")
        yield chunk


def _for_this_machine(manifests: Sequence[Mapping[str, Any]], uri: str) -> str:
    """Return the digest of the image for this machine's architecture, or of the only one."""
    machine = MACHINES.get(platform.machine(), platform.machine())
    for entry in manifests:
        if len(manifests) == 1 or entry.get("platform", {}).get("architecture") == machine:
            return str(entry["digest"])
    raise StorageError(f"{uri} holds no image for {machine}")
