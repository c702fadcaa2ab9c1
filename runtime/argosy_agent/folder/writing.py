"""Writing the files of a copy into a model's folder."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from argosy_agent.contract import RenderedModel
from argosy_agent.contract.models import VERSION
from argosy_agent.jsonfiles import write_text
from argosy_agent.transfer.beneath import resolved

from .tritonfolder import CONFIG, OWN_CONFIG, VERSION_CONFIG, version_files, with_defaults

MODEL_FOLDERS = ("warmup", "initial_state")
"""Folders next to the versions that config.pbtxt refers to; a version's files may have them."""


def write_model(model: RenderedModel, files: Mapping[int, Path], folder: Path) -> None:
    """Write a model's folder where none is: its config, its versions, and the files next to them.

    Raises OSError, StorageError.
    """
    folder.mkdir()
    for version in model.versions:
        write_version(model, version, files.get(version), folder / str(version))
    for name, extra in shared_files(model, files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy_into(extra, folder / name)
    (folder / CONFIG).write_text(config_of(model, folder))


def write_version(model: RenderedModel, version: int, files: Path | None, target: Path) -> None:
    """Make `target` the folder of a version: the files of a copy or none, the model's `texts` where it has none of that
    name, and its own configuration, with what that refers to. Raises StorageError, OSError.
    """
    source = model.versions[version]
    content = version_files(files, version, source.uri) if files is not None else None
    copy_into(content.folder if content is not None else None, target, source.filename)
    for name, text in model.texts.items():
        if not (target / name).exists():
            (target / name).write_text(text.replace(VERSION, str(version)), encoding="utf-8")
    if content is not None and content.config is not None:
        copy_into(content.config, target / OWN_CONFIG)
    for extra in content.shared if content is not None and source.own is not None else ():
        if not (target / extra.name).exists():
            copy_into(extra, target / extra.name)
    (target / VERSION_CONFIG).unlink(missing_ok=True)
    config = version_config_of(model, version, target)
    if config is not None:
        write_text(target / VERSION_CONFIG, config)


def version_config_of(model: RenderedModel, version: int, folder: Path) -> str | None:
    """Return the configuration that a version, which stands in `folder`, has of its own; None where it has the model's.

    Raises StorageError, OSError.
    """
    source = model.versions[version]
    return None if source.own is None else _completed(source.own.text, folder, source.uri)


def config_of(model: RenderedModel, folder: Path) -> str:
    """Return the configuration of the model whose versions stand in `folder`: values that it does not have are those of
    the configuration that came with the files of the newest version that is served by it. Raises StorageError, OSError.
    """
    newest = newest_by_config(model)
    if newest is None:
        return model.config_text
    return _completed(model.config_text, folder / str(newest), model.versions[newest].uri)


def newest_by_config(model: RenderedModel) -> int | None:
    """Return the newest version that is served by the model's configuration; None where each has one of its own."""
    return max((version for version, source in model.versions.items() if source.own is None), default=None)


def _completed(text: str, folder: Path, uri: str) -> str:
    """Return a configuration with values of that which came with the files in a version's folder."""
    own = folder / OWN_CONFIG
    return with_defaults(text, own.read_text(encoding="utf-8-sig"), uri) if own.is_file() else text


def copy_into(source: Path | None, target: Path, filename: str = "") -> None:
    """Make `target` the same file or folder as `source`, by hard links or, across disks, copies.

    No source is an empty folder. Where `source` is a folder with one file, that is called `filename`, if one
    is given.
    """
    if source is None:
        target.mkdir()
    elif source.is_dir():
        shutil.copytree(source, target, copy_function=_link_or_copy)
        files = list(target.iterdir())
        if filename and len(files) == 1 and files[0].is_file():
            (target / filename).parent.mkdir(parents=True, exist_ok=True)
            files[0].rename(target / filename)
    else:
        _link_or_copy(str(source), str(target))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def shared_files(model: RenderedModel, files: Mapping[int, Path]) -> dict[str, Path]:
    """Return what the files of the newest version that is served by the model's configuration bring for the model's own
    folder, by its path there. A version with a configuration of its own has such files in its own folder.

    Labels, warm-up data, initial states. What a configuration names outside of these files is nothing of the model's:
    the server says that it is missing. Raises StorageError for a link that leads out of them, OSError.
    """
    number = newest_by_config(model)
    newest = files.get(number) if number is not None else None
    if number is None or newest is None:
        return {}
    came = version_files(newest, number, model.versions[number].uri)
    if came.folder != newest:
        return {path.name: path for path in came.shared}
    names = sorted(_label_files(model.config_text) | set(MODEL_FOLDERS))
    paths = {name: newest / name for name in names if _is_beneath(name) and (newest / name).exists()}
    return {name: resolved(path, newest) for name, path in paths.items()}


def _is_beneath(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/")


def _label_files(config_text: str) -> set[str]:
    if "label_filename" not in config_text:
        return set()
    # The schema brings grpc and numpy with it, tens of MiB that an agent seldom needs.
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        config = text_format.Parse(config_text, ModelConfig())
    except text_format.ParseError:
        return set()  # the server refuses it and says why
    return {output.label_filename for output in config.output if output.label_filename}
