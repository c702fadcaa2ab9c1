"""DLPack by addresses: memory of other frameworks on a device, and our own memory for other frameworks.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html, unversioned, in capsules called `dltensor`.
"""

import ctypes
from typing import Any, Final

CPU: Final = 1
CUDA: Final = 2
"""DLPack's device types."""

_NAME: Final = b"dltensor"
_UINT: Final = 1


class _Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_api: Any = ctypes.pythonapi
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
# A capsule's destructor runs while it is being destroyed, so it gets the address and no new reference.
_is_unused = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_get_raw = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def address_of(exporter: Any) -> tuple[int, object]:
    """Return the address of a framework's memory, and what keeps that memory."""
    capsule = exporter.__dlpack__()
    managed = _Managed.from_address(_get(capsule, _NAME))
    return (managed.tensor.data or 0) + managed.tensor.byte_offset, (exporter, capsule)


def capsule(address: int, size: int, device: tuple[int, int], owner: object) -> object:
    """Return bytes of a device as a flat tensor of bytes; `owner` lives until the importer releases the tensor."""
    shape = (ctypes.c_int64 * 1)(size)
    managed = _Managed()
    managed.tensor = _Tensor(
        address,
        _Device(*device),
        1,
        _DataType(_UINT, 8, 1),
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
        None,
        0,
    )
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    location = ctypes.addressof(managed)
    _lent[location] = (managed, shape, owner)
    made: object = _new(location, _NAME, ctypes.cast(_destroy, ctypes.c_void_p))
    return made


_lent: Final[dict[int, object]] = {}
"""Exported tensors that are not released yet, by the address of their structure."""


def _release(managed: int) -> None:
    _lent.pop(managed, None)


def _release_unused(capsule: int) -> None:
    if _is_unused(capsule, _NAME):  # an importer renames the capsule, and calls the deleter itself
        _lent.pop(_get_raw(capsule, _NAME), None)


_delete: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
_destroy: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release_unused)

__all__ = ["CPU", "CUDA", "address_of", "capsule"]
