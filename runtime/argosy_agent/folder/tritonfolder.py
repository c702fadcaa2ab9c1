"""Files that are a full model folder of Triton's: `config.pbtxt` next to the folders of versions.

The folder of the requested version has the version's files, other files come to stand next to the versions, and the
configuration's values apply where the manifest has none. The configuration is kept in the version's folder, in case its
copy is evicted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.transfer.errors import StorageError, shown

CONFIG = "config.pbtxt"
VERSION_CONFIG = "argosy.pbtxt"
"""The configuration that a version has of its own, in its folder. It is the operator's, never one of the files."""
OWN_CONFIG = ".files-config.pbtxt"
"""What the configuration among the files is called in the folder of their version."""
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_DECIDED = ("name", "platform", "backend", "runtime", "version_policy", "instance_group")
"""Fields that the manifest and the plan decide, also where they say nothing."""
_NO_BATCH = re.compile(r"^max_batch_size: *0$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """One version's files, the files to put next to the versions, and the file of their configuration."""

    folder: Path
    shared: tuple[Path, ...] = ()
    config: Path | None = None


def version_files(copy: Path, version: int, uri: str) -> VersionFiles:
    """Return the files of the version in the copy at `copy`. Raises StorageError where they are ambiguous, OSError."""
    entries = sorted(path for path in copy.iterdir() if not path.name.startswith(".")) if copy.is_dir() else []
    versions = {int(path.name): path for path in entries if path.is_dir() and _NUMBER.fullmatch(path.name)}
    config = next((path for path in entries if path.name == CONFIG and path.is_file()), None)
    if not versions or (config is None and len(versions) < len(entries)):
        _refuse_repository(entries, uri)
        return VersionFiles(copy)
    shared = tuple(path for path in entries if path not in (config, *versions.values()) and path.name != "configs")
    return VersionFiles(_chosen(versions, version, uri), shared, config)


def with_defaults(config_text: str, defaults_text: str, uri: str) -> str:
    """Return the configuration with the values of the other where it has none. Raises StorageError."""
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        config = text_format.Parse(config_text, ModelConfig())
    except text_format.ParseError:
        return config_text  # the server refuses it and says why
    try:
        merged = text_format.Parse(defaults_text, ModelConfig())
    except text_format.ParseError as error:
        raise StorageError(f"{shown(uri)}: {CONFIG} is no model's configuration: {error}") from error
    if merged.HasField("ensemble_scheduling"):
        raise StorageError(f"{shown(uri)}: {CONFIG} is an ensemble's: declare an Ensemble for it")
    decided = {*_DECIDED, *(field.name for field, _ in config.ListFields())} - {"parameters"}
    for name in (*decided, *(["max_batch_size"] if _NO_BATCH.search(config_text) else [])):
        merged.ClearField(name)
    merged.MergeFrom(config)
    return str(text_format.MessageToString(merged))


def _chosen(versions: Mapping[int, Path], version: int, uri: str) -> Path:
    """Return the folder of the version, or the only one."""
    if version in versions:
        return versions[version]
    if len(versions) == 1:
        return next(iter(versions.values()))
    there = ", ".join(map(str, sorted(versions)))
    raise StorageError(
        f"{shown(uri)} holds the versions {there} of a model and none that is {version}: set the version to one of "
        f"them, or name the folder of one, such as {shown(uri).rstrip('/')}/{max(versions)}"
    )


def _refuse_repository(entries: list[Path], uri: str) -> None:
    models = [path.name for path in entries if (path / CONFIG).is_file()]
    if models and len(models) == len(entries):
        raise StorageError(
            f"{shown(uri)} is a repository of the models {', '.join(models)}: name one of them, such as "
            f"{shown(uri).rstrip('/')}/{models[0]}"
        )
