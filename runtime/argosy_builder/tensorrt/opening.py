"""Files of a build, opened: the ONNX model of a folder, and a plan as the server opens it."""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

MODEL = "model.onnx"


def model_file(folder: Path, filename: str) -> Path:
    """Return the ONNX model of a folder: called `filename`, else `model.onnx`, else the only one there. BuildError."""
    for name in filter(None, (filename, MODEL)):
        if (folder / name).is_file() and name.endswith(".onnx"):
            return folder / name
    paths = sorted(folder.glob("*.onnx")) or sorted(folder.glob("*/*.onnx"))
    if len(paths) == 1:
        return paths[0]
    there = ", ".join(path.name for path in paths or sorted(folder.iterdir())[:5]) or "nothing"
    raise BuildError(BuildFailure.MODEL_INVALID, f"spec.storageUri: must hold one ONNX model, and holds {there}")


def is_quantized(path: Path) -> bool:
    """Return whether a model has ranges of its own: QuantizeLinear nodes. Raises BuildError where the file is none."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise BuildError(
            BuildFailure.MODEL_INVALID, f"spec.storageUri: {path.name} is cut off, or no ONNX file ({error})"
        ) from error
    if not model.graph.node:
        raise BuildError(BuildFailure.MODEL_INVALID, f"spec.storageUri: {path.name} is empty, or no ONNX file")
    return any(node.op_type == "QuantizeLinear" for node in model.graph.node)


def config_of(plan: str, host_code: bool) -> ModelConfig:
    """Return a configuration with which the backend opens a plan."""
    config = ModelConfig(name="engine", backend="tensorrt", default_model_filename=plan)
    if host_code:
        config.parameters["VERSION_COMPATIBLE"].string_value = "true"
    return config


__all__ = ["config_of", "is_quantized", "model_file"]
