"""The Hub's protocol, as a small server on loopback speaks it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import DigestMismatchError, StorageError

COMMIT = "a" * 40
WEIGHTS = bytes(range(256)) * 40
FILES = {"config.json": b"{}", "weights.safetensors": WEIGHTS, "onnx/model.onnx": b"onnx", ".gitattributes": b"x"}


@pytest.fixture
def hub(site: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a Hub with the repository org/model, whose weights are stored on another server."""
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tree = [{"type": "directory", "path": "onnx", "oid": "d", "size": 0}]
    for path, body in FILES.items():
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
        site.files[f"/org/model/resolve/{COMMIT}/{path}"] = body
        if path.startswith("weights"):
            entry["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 100}
            site.files["/cdn/weights"] = site.files.pop(f"/org/model/resolve/{COMMIT}/{path}")
            site.answers[f"/org/model/resolve/{COMMIT}/{path}"] = (302, {"Location": "/cdn/weights"}, b"")
        tree.append(entry)
    for revision in ("main", "v1.0"):
        answer = {"id": "org/model", "modelId": "org/model", "sha": COMMIT, "tags": [], "siblings": []}
        site.answers[f"/api/models/org/model/revision/{revision}"] = as_json(answer)
    site.answers[f"/api/models/org/model/tree/{COMMIT}"] = as_json(tree)
    return site


def as_json(value: Any) -> tuple[int, dict[str, str], bytes]:
    """Return a full answer."""
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def names(copy: Path) -> set[str]:
    """Return the files of a copy."""
    return {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}


def test_a_model_by_its_revision(hub: Any, storage: Storage) -> None:
    copy = storage.fetch("hf://org/model@v1.0")
    assert names(copy) == {"config.json", "weights.safetensors", "onnx/model.onnx"}
    assert (copy / "weights.safetensors").read_bytes() == WEIGHTS
    requests = [headers for (path, _), headers in zip(hub.requests, hub.headers, strict=True) if "/model" in path]
    sent = {value for headers in requests for name, value in headers.items() if name.lower() == "authorization"}
    assert sent == {"Bearer hf_secret"}


def test_a_folder_or_a_file_of_a_model(hub: Any, storage: Storage) -> None:
    assert names(storage.fetch("hf://org/model/onnx")) == {"model.onnx"}
    assert names(storage.fetch("hf://org/model@main/config.json")) == {"config.json"}
    with pytest.raises(StorageError, match="hf://org/model/nothing: nothing is there"):
        storage.fetch("hf://org/model/nothing")


def test_cuts_and_errors_pass(hub: Any, storage: Storage) -> None:
    hub.statuses, hub.cuts = [500, 503], [9999, 9999, 9999, 300, 700]
    assert (storage.fetch("hf://org/model") / "weights.safetensors").read_bytes() == WEIGHTS


def test_weights_are_checked(hub: Any, storage: Storage) -> None:
    hub.files["/cdn/weights"] = WEIGHTS[::-1]
    with pytest.raises(DigestMismatchError, match=r"weights\.safetensors came with digest"):
        storage.fetch("hf://org/model")
    hub.files["/cdn/weights"] = WEIGHTS
    assert (storage.fetch("hf://org/model") / "weights.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize(("status", "words"), [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "correct spec.storageUri")])
def test_refusals(hub: Any, storage: Storage, status: int, words: str) -> None:
    hub.refused = {"/api/models/org/model/revision/main": status}
    with pytest.raises(StorageError, match=rf"hf://org/model: the server answered {status} .*{words}"):
        storage.fetch("hf://org/model")


def test_what_is_no_repository(storage: Storage) -> None:
    with pytest.raises(StorageError, match="write it like hf://organization/model"):
        storage.fetch("hf://model")
