"""Stores of each kind and an engine for them, for all tests of engines."""

from pathlib import Path

import pytest
from tests.agent.sites import cache, proxied, s3, site, storage
from tests.peers.s3 import S3

from argosy_agent.engines.store import EngineStore

from .making import FILES, open_at, write

__all__ = ["cache", "proxied", "s3", "site", "storage"]


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """Return the files of an engine."""
    return write(tmp_path / "built", FILES)


@pytest.fixture
def here(tmp_path: Path) -> EngineStore:
    """Return a store in a folder."""
    return open_at(f"file:{tmp_path}/engines", tmp_path)


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return the S3 server with an empty bucket `fleet`, and set the environment that a storage Secret would bring."""
    values = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ENDPOINT_URL": s3.url}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3.reset()
    s3.create_bucket("fleet")
    return s3


@pytest.fixture(params=["file", "pvc", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EngineStore:
    """Return a store of each kind that is real here."""
    if request.param == "s3":
        request.getfixturevalue("bucket")
        return open_at("s3://fleet/engines/", tmp_path)
    (tmp_path / "pvc" / "claim").mkdir(parents=True)
    return open_at({"file": f"file:{tmp_path}/engines", "pvc": "pvc://claim/deep/engines"}[request.param], tmp_path)
