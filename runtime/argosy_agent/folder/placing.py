"""Where a copy's files come to stand in a model's folder."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from argosy_agent.contract import RenderedModel
from argosy_agent.transfer.beneath import resolved

CONFIG = "config.pbtxt"
MODEL_FOLDERS = ("warmup", "initial_state")
"""Folders that config.pbtxt reads from beside the versions; a version's files may bring them."""


def place_model(model: RenderedModel, files: Mapping[int, Path], folder: Path) -> None:
    """Write a model's whole folder where none is: its config, its versions and what they bring for beside them."""
    folder.mkdir()
    for version, source in model.versions.items():
        place(files.get(version), folder / str(version), source.filename)
    for name, extra in beside_versions(model, files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        place(extra, folder / name)
    (folder / CONFIG).write_text(model.config_text)


def place(source: Path | None, target: Path, filename: str = "") -> None:
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


def beside_versions(model: RenderedModel, files: Mapping[int, Path]) -> dict[str, Path]:
    """Return what the newest version's files bring for the model's own folder, by its path there.

    Labels, warm-up data, initial states. What a configuration names outside of these files is nothing of the model's:
    the server says that it is missing. Raises StorageError for a link that leads out of them, OSError.
    """
    newest = files.get(max(model.versions, default=0))
    if newest is None:
        return {}
    names = sorted(_label_files(model.config_text) | set(MODEL_FOLDERS))
    found = {name: newest / name for name in names if _is_beneath(name) and (newest / name).exists()}
    return {name: resolved(path, newest) for name, path in found.items()}


def _is_beneath(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/")


def _label_files(config_text: str) -> set[str]:
    if "label_filename" not in config_text:
        return set()
    # The schema brings grpc and numpy with it, tens of MiB that an agent beside a server seldom needs.
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        config = text_format.Parse(config_text, ModelConfig())
    except text_format.ParseError:
        return set()  # the server refuses it and says why
    return {output.label_filename for output in config.output if output.label_filename}
