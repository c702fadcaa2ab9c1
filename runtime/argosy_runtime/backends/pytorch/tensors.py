"""numpy arrays as torch tensors and back, BF16 and strings included."""

from typing import Any

import ml_dtypes
import numpy as np
import torch

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array
from argosy_runtime.modelconfig import v2_of


def to_torch(model: str, name: str, array: Array, device: torch.device) -> Any:
    """A tensor on `device`, sharing memory where it can; a list of str for BYTES."""
    if array.dtype == np.object_:
        return _texts(model, name, array)
    given = array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
    if given.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(given.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(given).to(device)


def to_numpy(model: str, name: str, value: Any) -> Array:
    """The array of what forward returned for one output."""
    if isinstance(value, list):
        array = np.empty(len(value), dtype=np.object_)
        array[:] = [item.encode("utf-8") for item in value]
        return array
    if not isinstance(value, torch.Tensor):
        raise internal(
            f"model '{model}', output '{name}': the model returned {type(value).__name__}, expected a tensor"
        )
    host = value.detach().cpu().contiguous()
    if host.dtype == torch.bfloat16:
        bits: Array = host.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return bits
    plain: Array = host.numpy()
    return plain


def check_datatype(model: str, name: str, array: Array, expected: str) -> None:
    """Raise ServingError where the model gave another datatype than its configuration says."""
    found = v2_of(array.dtype)
    if found != expected:
        raise internal(
            f"model '{model}': unexpected datatype TYPE_{found} for inference output '{name}', "
            f"expecting TYPE_{expected}"
        )


def _texts(model: str, name: str, array: Array) -> list[str]:
    try:
        return [item.decode("utf-8") for item in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise invalid(f"model '{model}', input '{name}': TorchScript strings must be UTF-8: {error}") from error
