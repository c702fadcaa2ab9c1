"""ONNX files: which one a folder holds, reading it with its weights, writing it with large weights in a second file."""

from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

LARGE = 1_900_000_000
"""Bytes of weights above which they stand in a file of their own: a protobuf message ends at 2 GiB."""
NAME = "model.onnx"
FIELD = "spec.storageUri"


def model_file(folder: Path, filename: str = "") -> Path:
    """Return the model of a folder: called `filename`, else `model.onnx`, else the only .onnx file there or one folder
    below.

    Raises BuildError: MODEL_INVALID.
    """
    for name in filter(None, (filename, NAME)):
        if (folder / name).is_file():
            return folder / name
    paths = sorted(folder.glob("*.onnx")) or sorted(folder.glob("*/*.onnx"))
    files = [path for path in paths if path.is_file()]
    if len(files) == 1:
        return files[0]
    there = ", ".join(path.name for path in files or sorted(folder.iterdir())[:5]) or "nothing"
    raise BuildError(BuildFailure.MODEL_INVALID, f"{FIELD}: must hold one ONNX model, and holds {there}")


def loaded(path: Path, *, weights: bool = True) -> onnx.ModelProto:
    """Return a model, with its external data unless `weights` is false.

    Raises BuildError (MODEL_INVALID) where the file is cut off or is none, or where its data is not there or too short.
    """
    try:
        model = onnx.load(path, load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise _invalid(path, f"is cut off, or no ONNX file ({error})") from error
    if not model.graph.node and not model.graph.output:
        raise _invalid(path, "is empty, or no ONNX file")
    check_data(model, path)
    if weights:
        onnx.load_external_data_for_model(model, str(path.parent))
    return model


def check_data(model: onnx.ModelProto, path: Path) -> None:
    """Raise BuildError where the external data that a model names is not there whole."""
    for tensor in model.graph.initializer:
        if not uses_external_data(tensor):
            continue
        info = ExternalDataInfo(tensor)
        data = path.parent / info.location
        if not data.is_file():
            raise _invalid(path, f"keeps its weights in {info.location}, which is not there; put it next to the model")
        if data.stat().st_size < (info.offset or 0) + (info.length or 0):
            raise _invalid(path, f"keeps its weights in {info.location}, which is cut off")


def has_external_data(model: onnx.ModelProto) -> bool:
    """Return whether some of a model's weights stand in other files."""
    return any(map(uses_external_data, model.graph.initializer))


def weight_bytes(model: onnx.ModelProto) -> int:
    """Return how large the weights are, wherever they stand."""
    total = 0
    for tensor in model.graph.initializer:
        external = uses_external_data(tensor)
        total += (ExternalDataInfo(tensor).length or 0) if external else tensor.ByteSize()
    return total


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write a model; large weights into `<name>.data` next to it."""
    large = weight_bytes(model) > LARGE
    more: dict[str, Any] = {"save_as_external_data": True, "location": f"{path.name}.data"} if large else {}
    onnx.save_model(model, path, **more)


def _invalid(path: Path, message: str) -> BuildError:
    return BuildError(BuildFailure.MODEL_INVALID, f"{FIELD}: {path.name} {message}")
