"""A server's repository on disk, changed while the server reads it.

A change is staged in a side folder, moved in, and then accepted or reverted, so the folder always contains the served
files or those being loaded. Unchanged versions are not touched: a server that compares times sees no change.

    <server>/repository/<model>/    read by the server
    <server>/applied/<model>.json   record of the last load
    <server>/staging/, replaced/    only during a change
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from argosy_agent.contract.documents import of_model, to_model
from argosy_agent.contract.fields import DocumentError, Fields, number
from argosy_agent.jsonfiles import read_json, write_json, write_text

from .target import Target
from .traffic import with_traffic
from .tritonfolder import CONFIG, VERSION_CONFIG
from .writing import config_of, copy_into, newest_by_config, shared_files, version_config_of, write_version

SIDE_FOLDERS = ("staging", "replaced")
LONGEST_RECORD = 200
"""A record's name is the model's own up to this many bytes; a file's name has room for 255."""


class RepositoryFolder:
    """One server's folder. It blocks; one change per model at a time. `log` says where the server's log is.

    `traffic`: how the requests of models are divided now, by name, in every configuration that is written: also in one
    of a former target, and one that is put back. `divide` may run during a change.
    """

    def __init__(self, server: Path, log: str) -> None:
        self._server = server
        self.traffic: Mapping[str, str] = {}
        self._writing = Lock()
        self.root = server / "repository"
        self.log = log
        for folder in (self.root, server / "applied"):
            folder.mkdir(parents=True, exist_ok=True)
        for left in SIDE_FOLDERS:
            shutil.rmtree(server / left, ignore_errors=True)

    def applied(self) -> dict[str, Target]:
        """Return the record of the last load of each model.

        An interrupted change has no keys, and an unreadable record counts as missing: both are applied again.
        """
        records = (_read(path) for path in sorted((self._server / "applied").glob("*.json")))
        return {target.model.name: target for target in records if target is not None}

    def names(self) -> set[str]:
        """Return the models that have a folder."""
        return {path.name for path in self.root.iterdir() if path.is_dir()}

    def standing(self, target: Target, before: Target | None) -> dict[int, Path]:
        """Return the folders of a target's versions that are still valid since `before` was loaded."""
        if before is None:
            return {}
        entries = {version: self.root / target.model.name / str(version) for version in target.model.versions}
        return {v: entry for v, entry in entries.items() if target.has_same_files(before, v) and entry.is_dir()}

    def stage(self, target: Target, before: Target | None, files: Mapping[int, Path]) -> "StagedChange":
        """Put a model's new files and config in place.

        What they replace is retained until the change is accepted or reverted.
        """
        change = StagedChange(self, target, before)
        self.clear(target.model.name)  # an earlier change may not have come to it
        self._record(Target(before.model if before else target.model, {}))
        try:
            self._stage(change, files)
        except BaseException:
            change.revert()
            raise
        return change

    def remove(self, name: str) -> None:
        """Drop a model's folder and its record."""
        self._record_path(name).unlink(missing_ok=True)
        shutil.rmtree(self.root / name, ignore_errors=True)

    def clear(self, name: str) -> None:
        """Drop the side folders of a change of this model. Raises OSError."""
        for kind in SIDE_FOLDERS:
            _remove(self._server / kind / name)

    def _stage(self, change: "StagedChange", files: Mapping[int, Path]) -> None:
        target, folder = change.target, self.root / change.target.model.name
        folder.mkdir(exist_ok=True)
        standing = self.standing(target, change.before).keys()
        for version in sorted(target.model.versions.keys() - standing):
            change.put_version(version, files.get(version))
        newest = newest_by_config(target.model)
        unchanged = newest in standing and change.before is not None and newest == newest_by_config(change.before.model)
        for name, extra in shared_files(target.model, files).items():
            # What stands stays the very same: another file of the same content would make a server reload the model.
            if not (unchanged and (folder / name).exists()):
                change.put(folder / name, extra)
        for version in sorted(standing):
            entry = folder / str(version)
            change.put_config(entry / VERSION_CONFIG, version_config_of(target.model, version, entry))
        change.put_config(folder / CONFIG, config_of(target.model, folder))

    def divide(self, name: str) -> None:
        """Write into a model's configuration how its requests are divided now, whatever else that says."""
        with self._writing:
            config = self.root / name / CONFIG
            text = config.read_text() if config.is_file() else ""
            divided = with_traffic(text, self.traffic.get(name, ""))
            if text and divided != text:
                write_text(config, divided)

    def write_config(self, path: Path, text: str | None) -> None:
        """Write a configuration of a model or a version, or remove it where there is to be none."""
        with self._writing:
            if text is None:
                path.unlink(missing_ok=True)
            elif path.name == CONFIG:
                write_text(path, with_traffic(text, self.traffic.get(path.parent.name, "")))
            else:
                write_text(path, text)

    def _record(self, target: Target) -> None:
        write_json(self._record_path(target.model.name), _to_json(target))

    def _record_path(self, name: str) -> Path:
        encoded = name.encode()
        if len(encoded) > LONGEST_RECORD:
            start = encoded[: LONGEST_RECORD - 17].decode(errors="ignore")
            name = f"{start}-{hashlib.sha256(encoded).hexdigest()[:16]}"
        return self._server / "applied" / f"{name}.json"

    def _side_path(self, kind: str, entry: Path) -> Path:
        path = self._server / kind / entry.relative_to(self.root)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class StagedChange:
    """A staged change to one model's folder.

    Accept it when it is loaded and tidy up when nothing needs what it replaced; or take it back.
    """

    def __init__(self, folder: RepositoryFolder, target: Target, before: Target | None) -> None:
        self.target, self.before = target, before
        self._configs: dict[Path, str | None] = {}
        self._folder = folder
        self._put: list[Path] = []

    def put_version(self, version: int, files: Path | None) -> None:
        """Put a version's files, or an empty folder, in place, and move what stood there to the side."""
        entry = self._folder.root / self.target.model.name / str(version)
        staged = self._folder._side_path("staging", entry)
        write_version(self.target.model, version, files, staged)
        self._swap(entry, staged)

    def put(self, entry: Path, source: Path) -> None:
        """Put a copy of `source` at `entry`, and move what stood there to the side."""
        staged = self._folder._side_path("staging", entry)
        copy_into(source, staged)
        self._swap(entry, staged)

    def put_config(self, path: Path, text: str | None) -> None:
        """Write a configuration, or remove it where there is to be none."""
        self._configs[path] = path.read_text() if path.is_file() else None
        self._folder.write_config(path, text)

    def _swap(self, entry: Path, staged: Path) -> None:
        if entry.exists():
            entry.rename(self._folder._side_path("replaced", entry))
        entry.parent.mkdir(parents=True, exist_ok=True)
        self._put.append(entry)
        staged.rename(entry)

    def accept(self) -> None:
        """Record that the change is loaded."""
        self._folder._record(self.target)

    def tidy(self) -> None:
        """Drop what an accepted change replaced, and versions that are not served any more."""
        self._folder.clear(self.target.model.name)
        for path in (self._folder.root / self.target.model.name).iterdir():
            if path.name.isdigit() and int(path.name) not in self.target.model.versions:
                _remove(path)

    def revert(self) -> None:
        """Put back what was served before, or nothing, as the change cannot be loaded."""
        self._put_back()
        self._folder.clear(self.target.model.name)

    def _put_back(self) -> None:
        if self.before is None:
            self._folder.remove(self.target.model.name)
            return
        for entry in reversed(self._put):
            _remove(entry)
            replaced = self._folder._side_path("replaced", entry)
            if replaced.exists():
                replaced.rename(entry)
        for path, text in self._configs.items():
            self._folder.write_config(path, text)
        config = self._folder.root / self.before.model.name / CONFIG
        if not config.is_file():
            self._folder.write_config(config, self.before.model.config_text)
        self._folder._record(self.before)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _to_json(target: Target) -> dict[str, Any]:
    return {**of_model(target.model), "keys": {str(version): key for version, key in target.keys.items()}}


def _read(path: Path) -> Target | None:
    record = read_json(path)
    try:
        return _from_json(Fields(record, path.name)) if record is not None else None
    except DocumentError:
        return None


def _from_json(fields: Fields) -> Target:
    keys = fields.mapping("keys")
    return Target(to_model(fields), {number(key, keys.at(key)): keys.text(key) for key in keys.values})
