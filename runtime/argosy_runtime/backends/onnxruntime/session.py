"""Opening an ONNX file: finding it, choosing what runs it, and saying clearly why it cannot be opened."""

import re
from pathlib import Path

import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, internal, unavailable

from . import options
from .signature import Signature, tensor_info

_ORT_MESSAGE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)


def model_file(config: ModelConfig, version_dir: Path, instance: str) -> Path:
    """Return the file that the configuration names. Raises ServingError (UNAVAILABLE) without it."""
    path = version_dir / (config.default_model_filename or "model.onnx")
    if path.is_dir():
        path = path / "model.onnx"
    if not path.is_file():
        raise unavailable(f"unable to find '{path}' for model instance '{instance}'")
    return path


def open_session(
    config: ModelConfig, path: Path, kind: str, device_id: int, instance: str, stream: int | None = None
) -> ort.InferenceSession:
    """Return a session with the providers that the configuration requests, and no silent fallback to others.

    On a GPU it works on the CUDA stream of that handle, or on one of its own. Raises ServingError: UNAVAILABLE
    where a provider cannot be started, INTERNAL where the file cannot be read.
    """
    chosen = options.providers(config, kind, device_id, stream)
    try:
        settings = options.session_options(config)
        session = ort.InferenceSession(str(path), settings, providers=chosen)
    except ServingError:
        raise
    except Exception as error:
        raise internal(f"failed to load '{path}' for model instance '{instance}': {explained(error)}") from error
    _check_used(chosen, session, instance, kind)
    return session


def read_signature(session: ort.InferenceSession) -> Signature:
    """Return the open file's inputs and outputs."""
    sides = (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    inputs, outputs, overridable = (
        {tensor.name: tensor_info(tensor.type, tensor.shape) for tensor in side} for side in sides
    )
    return Signature(inputs, outputs, overridable)


def explained(error: Exception) -> str:
    """Return an ONNX Runtime error in Triton's words; any other as it is."""
    match = _ORT_MESSAGE.match(str(error))
    return f"onnx runtime error {match[1]}: {match[2]}" if match else str(error)


def check_installed(config: ModelConfig, kind: str, device_id: int, instance: str) -> None:
    """Raise ServingError (UNAVAILABLE) where the installed build lacks a provider that the configuration requests."""
    installed = ort.get_available_providers()
    for name, _ in options.providers(config, kind, device_id):
        if name not in installed:
            raise unavailable(
                f"model instance '{instance}' ({kind}) needs ONNX Runtime's {name}, but the installed build "
                f"has "
                f"{', '.join(installed)}; {_advice(name)}"
            )


def _check_used(chosen: list[options.Provider], session: ort.InferenceSession, instance: str, kind: str) -> None:
    used = session.get_providers()
    for name, _ in chosen:
        if name not in used:
            raise unavailable(
                f"model instance '{instance}' ({kind}) needs ONNX Runtime's {name}, which could not be "
                f"started; "
                "its libraries or the device are missing"
            )


def _advice(provider: str) -> str:
    if provider == options.OPENVINO:
        return "install onnxruntime-openvino, or drop the accelerator"
    return "install onnxruntime-gpu, or give the model an instance group of KIND_CPU"
