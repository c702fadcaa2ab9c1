"""The distribution protocol, as a small registry on loopback speaks it."""

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import DigestMismatchError, StorageError
from argosy_agent.transfer.localfiles import digest_of

WEIGHTS = bytes(range(256)) * 40
OCI = "application/vnd.oci.image"
Layer = tuple[str, dict[str, str], bytes]


def push(site: Any, layers: list[Layer], tag: str = "1", kind: str = f"{OCI}.manifest.v1+json") -> str:
    """Put an artifact of these layers at models/m; its digest."""
    described = []
    for media, notes, body in layers:
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        site.files[f"/v2/models/m/blobs/{digest}"] = body
        described.append({"mediaType": media, "digest": digest, "size": len(body), "annotations": notes})
    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, "layers": described}).encode()
    return put(site, tag, manifest, kind)


def put(site: Any, tag: str, manifest: bytes, kind: str) -> str:
    """Put a manifest under its tag and its digest."""
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    for reference in (tag, digest):
        site.answers[f"/v2/models/m/manifests/{reference}"] = (200, {"Content-Type": kind}, manifest)
    return digest


def packed(**files: bytes) -> bytes:
    """Return a compressed tar archive; a double underscore in a name is a slash."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tarred:
        for name, body in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(body)
            tarred.addfile(member, io.BytesIO(body))
    return out.getvalue()


@pytest.fixture
def registry(site: Any) -> Any:
    """Return a registry that needs no credentials."""
    site.answers["/v2/"] = (200, {}, b"{}")
    return site


def uri(site: Any, reference: str = ":1") -> str:
    """Return the artifact's URI."""
    return f"oci://{urlsplit(site.url).netloc}/models/m{reference}"


def titled(name: str, body: bytes) -> Layer:
    """Return a layer as `oras push` makes it of a file."""
    return "application/octet-stream", {"org.opencontainers.image.title": name}, body


def test_an_artifact_of_files(registry: Any, storage: Storage) -> None:
    digest = push(registry, [titled("config.json", b"{}"), titled("sub/weights", WEIGHTS)])
    copy = storage.fetch(uri(registry))
    assert (copy / "sub" / "weights").read_bytes() == WEIGHTS
    assert (copy / "config.json").read_bytes() == b"{}"
    assert storage.fetch(uri(registry, f"@{digest}"), digest).is_dir()
    assert storage.fetch(uri(registry), digest_of(copy)).is_dir()


def test_an_image_of_layers(registry: Any, storage: Storage) -> None:
    tar = f"{OCI}.layer.v1.tar+gzip"
    push(
        registry,
        [
            (tar, {}, packed(models__old=b"old", models__weights=b"1")),
            (tar, {}, packed(models__weights=WEIGHTS, **{"models__.wh.old": b""})),
        ],
    )
    copy = storage.fetch(uri(registry))
    assert {path.relative_to(copy).as_posix() for path in copy.rglob("*")} == {"models", "models/weights"}
    assert (copy / "models" / "weights").read_bytes() == WEIGHTS


def test_an_index(registry: Any, storage: Storage) -> None:
    digest = push(registry, [titled("weights", WEIGHTS)])
    index = json.dumps({"manifests": [{"digest": digest}]}).encode()
    put(registry, "many", index, f"{OCI}.index.v1+json")
    assert (storage.fetch(uri(registry, ":many")) / "weights").read_bytes() == WEIGHTS


def test_cuts_pass_and_every_layer_is_checked(registry: Any, storage: Storage) -> None:
    push(registry, [titled("weights", WEIGHTS)])
    registry.cuts = [9999, 9999, 300, 500]
    assert (storage.fetch(uri(registry)) / "weights").read_bytes() == WEIGHTS
    blob = next(path for path in registry.files if "blobs" in path)
    registry.files[blob] = WEIGHTS[::-1]
    with pytest.raises(DigestMismatchError, match="the layer weights came with digest"):
        storage.fetch(uri(registry, ":1"), "sha256:" + "0" * 64)


def test_a_manifest_that_is_another(registry: Any, storage: Storage) -> None:
    digest = push(registry, [titled("weights", WEIGHTS)])
    path = f"/v2/models/m/manifests/{digest}"
    registry.answers[path] = (200, {}, registry.answers[path][2] + b" ")
    with pytest.raises(DigestMismatchError, match=f"not {digest}"):
        storage.fetch(uri(registry, f"@{digest}"))


def test_a_tag_that_moves_between_tries_is_checked_by_its_last_digest(registry: Any, storage: Storage) -> None:
    declared = push(registry, [titled("weights", WEIGHTS)])
    left = [1]

    def moves(path: str, headers: Any) -> Any:
        if "/blobs/" in path and left:
            left.pop()
            push(registry, [titled("weights", WEIGHTS[::-1])])
            return 503, {}, b""
        return None

    registry.guard = moves
    with pytest.raises(DigestMismatchError, match=f"not the declared {declared}"):
        storage.fetch(uri(registry), declared)


def test_a_token_that_expires_is_renewed(site: Any, storage: Storage) -> None:
    push(site, [titled("weights", WEIGHTS)])
    tokens, used = [0], [0]
    challenge = f'Bearer realm="{site.url}/token",service="here"'

    def guard(path: str, headers: Any) -> Any:
        if path == "/token":
            tokens[0] += 1
            return 200, {}, json.dumps({"token": f"t{tokens[0]}", "expires_in": 60}).encode()
        used[0] += 1
        right = headers.get("Authorization") == f"Bearer t{tokens[0]}" and (tokens[0] > 1 or used[0] < 9)
        return None if right and path != "/v2/" else (401, {"WWW-Authenticate": challenge}, b"")

    site.guard = guard
    assert (storage.fetch(uri(site)) / "weights").read_bytes() == WEIGHTS
    assert tokens[0] == 2


def test_a_second_refusal_in_a_row_is_final(site: Any, storage: Storage) -> None:
    push(site, [titled("weights", WEIGHTS)])
    tokens = [0]
    challenge = f'Bearer realm="{site.url}/token",service="here"'

    def guard(path: str, headers: Any) -> Any:
        if path == "/token":
            tokens[0] += 1
            return 200, {}, b'{"token": "abc"}'
        a_part = "/blobs/" in path and headers.get("Range") != "bytes=0-0"
        return (401, {"WWW-Authenticate": challenge}, b"") if path == "/v2/" or a_part else None

    site.guard = guard
    with pytest.raises(StorageError, match=r"401 Unauthorized.*\.dockerconfigjson"):
        storage.fetch(uri(site))
    assert 1 < tokens[0] < 10


@pytest.mark.parametrize("bearer", [True, False])
def test_credentials_of_the_secret(site: Any, storage: Storage, tmp_path: Path, bearer: bool) -> None:
    push(site, [titled("weights", WEIGHTS)])
    basic = "Basic " + base64.b64encode(b"me:secret").decode()
    challenge = f'Bearer realm="{site.url}/token",service="here"' if bearer else 'Basic realm="here"'

    def guard(path: str, headers: Any) -> Any:
        if path == "/token":
            good = headers.get("Authorization") == basic
            return (200, {}, b'{"token": "abc"}') if good else (401, {}, b"")
        right = headers.get("Authorization") == ("Bearer abc" if bearer else basic)
        if path == "/v2/":
            return (200 if right else 401), {"WWW-Authenticate": challenge}, b""
        return None if right else (401, {"WWW-Authenticate": challenge}, b"")

    site.guard = guard
    with pytest.raises(StorageError, match=r"401 Unauthorized.*\.dockerconfigjson"):
        storage.fetch(uri(site))
    (tmp_path / "secrets").mkdir()
    login = {"auths": {urlsplit(site.url).netloc: {"auth": base64.b64encode(b"me:secret").decode()}}}
    (tmp_path / "secrets" / ".dockerconfigjson").write_text(json.dumps(login))
    assert (storage.fetch(uri(site)) / "weights").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "dockerconfigjson"), (404, "correct spec.storageUri"), (500, "4 times in a row")],
)
def test_refusals(registry: Any, storage: Storage, status: int, words: str) -> None:
    registry.refused = {"/v2/models/m/manifests/1": status}
    with pytest.raises(StorageError, match=rf"{uri(registry)}: the server answered {status} .*{words}"):
        storage.fetch(uri(registry))


def test_a_title_may_not_leave_its_folder(registry: Any, storage: Storage) -> None:
    push(registry, [titled("../../outside", b"x")])
    with pytest.raises(StorageError, match="outside its folder"):
        storage.fetch(uri(registry))
