"""The folder has the newest rounds whose decisions differ; trouble with the disk ends no round."""

import gzip
import json
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import START

from argosy.reconcile import reconcile
from argosy.replay.codec import DocumentError
from argosy.replay.decisions import replayed
from argosy.replay.folder import BundleFolder, read_bundle
from argosy.snapshot import FleetSnapshot

DRAIN = timedelta(seconds=5)


def _record(folder: BundleFolder, version: int, second: int) -> None:
    snapshot = FleetSnapshot((pool(), model("a", version)), (gpu_node("n", 2),))
    now = START + timedelta(seconds=second)
    folder.record("default/p", snapshot, now, DRAIN, reconcile(snapshot, START, DRAIN))


def test_a_round_is_written_once_it_decides_otherwise(tmp_path: Path) -> None:
    folder = BundleFolder(tmp_path / "bundles", "0.1.0")
    for second, version in enumerate((1, 1, 2, 2, 1)):
        _record(folder, version, second)
    names = sorted(path.name for path in (tmp_path / "bundles").iterdir())
    assert names == [f"default_p-20260101T00000{second}.000000Z.json.gz" for second in (0, 2, 4)]
    bundle = read_bundle(tmp_path / "bundles" / names[1])
    assert bundle.release == "0.1.0"
    assert bundle.now == START + timedelta(seconds=2)
    assert [resource.name for resource in bundle.snapshot.resources] == ["p", "a"]


def test_measurements_alone_are_written_seldom(tmp_path: Path) -> None:
    folder = BundleFolder(tmp_path, "0.1.0")
    snapshot = FleetSnapshot((pool(), model("a")), (gpu_node("n", 2),))
    outcome = reconcile(snapshot, START, DRAIN)
    for second in range(25):
        statuses = {name: status.model_copy(update={"replicas": second}) for name, status in outcome.statuses.items()}
        now = START + timedelta(seconds=second)
        folder.record("default/p", snapshot, now, DRAIN, replace(outcome, statuses=statuses))
    assert [path.name.partition("T")[2][:6] for path in sorted(tmp_path.iterdir())] == ["000000", "000010", "000020"]


def test_the_newest_stay(tmp_path: Path) -> None:
    folder = BundleFolder(tmp_path, "0.1.0", retained=2)
    other = tmp_path / "default_p2-20250101T000000.000000Z.json.gz"
    other.write_bytes(b"")
    for second in range(5):
        _record(folder, second + 1, second)
    remaining = sorted(path.name for path in tmp_path.glob("default_p-*"))
    assert remaining == [f"default_p-20260101T00000{second}.000000Z.json.gz" for second in (3, 4)]
    assert other.exists()


def test_a_round_that_failed_is_written(tmp_path: Path) -> None:
    snapshot = FleetSnapshot((pool(),), (gpu_node("n", 2),))
    BundleFolder(tmp_path, "0.1.0").record("default/p", snapshot, START, DRAIN, ValueError("a fault"))
    (path,) = tmp_path.iterdir()
    bundle = read_bundle(path)
    assert (bundle.error, bundle.decisions) == ("ValueError: a fault", None)


def test_a_bundle_may_be_plain_json(tmp_path: Path) -> None:
    folder = BundleFolder(tmp_path, "0.1.0")
    _record(folder, 1, 0)
    (path,) = tmp_path.iterdir()
    plain = tmp_path / "bundle.json"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    assert read_bundle(plain) == read_bundle(path)
    assert json.loads(plain.read_text())["argosyBundle"] == 2
    assert replayed(read_bundle(plain)).is_same


def test_only_its_own_user_reads_a_bundle(tmp_path: Path) -> None:
    _record(BundleFolder(tmp_path, "0.1.0"), 1, 0)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


def test_half_a_file_is_no_bundle(tmp_path: Path) -> None:
    _record(BundleFolder(tmp_path, "0.1.0"), 1, 0)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DocumentError, match="no whole gzip file"):
        read_bundle(path)


def test_a_folder_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    folder = BundleFolder(tmp_path / "file" / "bundles", "0.1.0")
    with caplog.at_level(logging.WARNING):
        for second in range(3):
            _record(folder, 1, second)
    assert len(caplog.records) == 1
    assert "bundle of a round cannot be written" in caplog.text
