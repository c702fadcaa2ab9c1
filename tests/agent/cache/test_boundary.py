"""Files that a storage never reads, and never gives to models that may not have them."""

import os
from pathlib import Path

import pytest
from tests.agent.sites import Site

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.beneath import opened
from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.stores.local import LINK_FROM, LocalSource, Roots


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file of the agent's own."""
    path = tmp_path / "secrets" / "storage" / "key"
    path.parent.mkdir(parents=True)
    path.write_text("hush")
    return path


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    """Return the folder of a claim."""
    path = tmp_path / "pvc" / "claim"
    (path / "m").mkdir(parents=True)
    return path


def confined(tmp_path: Path, *folders: Path) -> Storage:
    """Return a storage as a Pod has it, which may read these folders by `file:`."""
    return Storage(tmp_path / "cache", pvc_root=tmp_path / "pvc", folders=folders)


@pytest.mark.parametrize("linked", ["key", "storage"])
def test_a_link_out_of_a_claim_is_not_followed(tmp_path: Path, secret: Path, claim: Path, linked: str) -> None:
    (claim / "m" / "model.onnx").write_text("model")
    (claim / "m" / "extra").symlink_to(secret if linked == "key" else secret.parent)
    with pytest.raises(StorageError, match=r"m/extra leads out of .*/pvc/claim"):
        confined(tmp_path).fetch("pvc://claim/m")


def test_a_claim_that_is_a_link_itself_gives_nothing(tmp_path: Path, secret: Path, claim: Path) -> None:
    (claim / "all").symlink_to(secret.parent)
    with pytest.raises(StorageError, match="leads out of"):
        confined(tmp_path).fetch("pvc://claim/all")
    with pytest.raises(StorageError, match="leads out of"):
        confined(tmp_path).fetch("pvc://claim/all/key")


def test_links_within_a_claim_are_followed(tmp_path: Path, claim: Path) -> None:
    (claim / "shared").write_text("weights")
    (claim / "m" / "model.onnx").symlink_to("../shared")
    copy = confined(tmp_path).fetch("pvc://claim/m")
    assert (copy / "model.onnx").read_text() == "weights"
    assert not (copy / "model.onnx").is_symlink()


def test_a_link_that_replaces_a_file_after_the_listing_is_not_read(tmp_path: Path, secret: Path, claim: Path) -> None:
    model = claim / "m" / "model.onnx"
    with model.open("wb") as file:
        file.truncate(LINK_FROM)
    source = LocalSource("pvc://claim/m", Roots(tmp_path / "pvc"))
    [listed] = source.files()
    model.unlink()
    model.symlink_to(secret)
    os.utime(secret, ns=(int(listed.mark), int(listed.mark)))
    with pytest.raises(StorageError, match="leads out of"):
        list(source.read(listed, 0, 4))
    with pytest.raises(StorageError, match="leads out of"):
        source.link(listed, tmp_path / "target")
    with pytest.raises(StorageError, match="leads out of"):
        source.check(listed, tmp_path / "target")


def test_a_fifo_does_not_hold_up_who_opens_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(StorageError, match="is a FIFO"), opened(tmp_path / "fifo", tmp_path):
        pass


@pytest.mark.parametrize("path", ["secrets/storage/key", "models/../secrets/storage", "models/out"])
def test_a_file_uri_names_only_what_the_pool_allows(tmp_path: Path, secret: Path, path: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "out").symlink_to(secret.parent)
    for storage in (confined(tmp_path), confined(tmp_path, tmp_path / "models")):
        with pytest.raises(StorageError, match=r"allowedFolders|leads out of"):
            storage.fetch(f"file:{tmp_path}/{path}")


def test_an_allowed_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model").write_text("one")
    copy = confined(tmp_path, tmp_path / "models").fetch(f"file:{tmp_path}/models")
    assert (copy / "model").read_text() == "one"


def test_what_other_credentials_fetched_is_no_copy(tmp_path: Path, site: Site) -> None:
    site.files["/private"] = b"mine alone"
    uri = f"{site.url}/private"
    named = tmp_path / "named" / "alice"
    named.mkdir(parents=True)
    (named / "AWS_ACCESS_KEY_ID").write_text("a")

    def agent(identity: str) -> Storage:
        return Storage(tmp_path / "cache", named_secrets=tmp_path / "named", identity=identity)

    agent("secret/one").fetch(uri, secret="alice")
    keys = {
        agent("secret/one").key(uri, secret="alice"),
        agent("secret/one").key(uri),
        agent("secret/two").key(uri),
        agent("").key(uri),
    }
    assert len(keys) == 4
    site.refused["/private"] = 403
    for storage in (agent("secret/one"), agent("secret/two")):
        with pytest.raises(StorageError, match="403 Forbidden"):
            storage.fetch(uri)
    assert (agent("secret/two").fetch(uri, secret="alice") / "private").read_bytes() == b"mine alone"


def test_a_rotated_secret_fetches_nothing(tmp_path: Path, site: Site) -> None:
    site.files["/m"] = b"model"
    key = tmp_path / "named" / "alice" / "AWS_ACCESS_KEY_ID"
    key.parent.mkdir(parents=True)
    storage = Storage(tmp_path / "cache", named_secrets=tmp_path / "named")
    key.write_text("old")
    before = storage.key(f"{site.url}/m", secret="alice")
    key.write_text("new")
    assert storage.key(f"{site.url}/m", secret="alice") == before
    assert "new" not in before
