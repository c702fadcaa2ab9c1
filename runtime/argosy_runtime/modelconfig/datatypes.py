"""One table of tensor datatypes: the V2 protocol's name, config.pbtxt's enum, numpy's dtype, the size.

BYTES is an object array of `bytes`. BF16 needs ml_dtypes, imported only when a BF16 array is asked for.
"""

from dataclasses import dataclass

import numpy as np
from tritonclient.grpc import model_config_pb2 as pb

from .errors import ConfigError


@dataclass(frozen=True, slots=True)
class Datatype:
    """A row of the table. `element_size` is in bytes, None where elements differ in size."""

    v2: str
    config_name: str
    numpy_name: str
    element_size: int | None


TABLE = (
    Datatype("BOOL", "TYPE_BOOL", "bool", 1),
    Datatype("UINT8", "TYPE_UINT8", "uint8", 1),
    Datatype("UINT16", "TYPE_UINT16", "uint16", 2),
    Datatype("UINT32", "TYPE_UINT32", "uint32", 4),
    Datatype("UINT64", "TYPE_UINT64", "uint64", 8),
    Datatype("INT8", "TYPE_INT8", "int8", 1),
    Datatype("INT16", "TYPE_INT16", "int16", 2),
    Datatype("INT32", "TYPE_INT32", "int32", 4),
    Datatype("INT64", "TYPE_INT64", "int64", 8),
    Datatype("FP16", "TYPE_FP16", "float16", 2),
    Datatype("FP32", "TYPE_FP32", "float32", 4),
    Datatype("FP64", "TYPE_FP64", "float64", 8),
    Datatype("BYTES", "TYPE_STRING", "object", None),
    Datatype("BF16", "TYPE_BF16", "bfloat16", 2),
)

_BY_V2 = {row.v2: row for row in TABLE}
_BY_CONFIG: dict[int, Datatype] = {int(pb.DataType.Value(row.config_name)): row for row in TABLE}
_NUMPY: dict[str, np.dtype[np.generic]] = {row.v2: np.dtype(row.numpy_name) for row in TABLE if row.v2 != "BF16"}


def _row(v2: str) -> Datatype:
    row = _BY_V2.get(v2)
    if row is None:
        raise ConfigError(f"unknown datatype '{v2}', expected one of {', '.join(_BY_V2)}")
    return row


def v2_name(config_type: int) -> str:
    """Return the V2 name of a config enum value. Raises ConfigError for TYPE_INVALID and for unknown numbers."""
    row = _BY_CONFIG.get(config_type)
    if row is None:
        raise ConfigError(f"unknown data_type {config_name(config_type)}")
    return row.v2


def config_name(config_type: int) -> str:
    """Return TYPE_FP32 and the like for an enum value; the number itself where it is unknown."""
    row = _BY_CONFIG.get(config_type)
    if row is not None:
        return row.config_name
    return "TYPE_INVALID" if config_type == pb.TYPE_INVALID else str(config_type)


def config_type(v2: str) -> int:
    """Return the config enum value of a V2 name. Raises ConfigError where the name is unknown."""
    value: int = pb.DataType.Value(_row(v2).config_name)
    return value


def numpy_dtype(v2: str) -> np.dtype[np.generic]:
    """Return the numpy dtype of a V2 name. Raises ConfigError where it is unknown, or BF16 without ml_dtypes."""
    dtype = _NUMPY.get(v2)
    if dtype is not None:
        return dtype
    _row(v2)
    return _bfloat16()


def _bfloat16() -> np.dtype[np.generic]:
    try:
        import ml_dtypes
    except ImportError:
        raise ConfigError("datatype BF16 needs the package ml_dtypes, which is not installed") from None
    dtype: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
    return _NUMPY.setdefault("BF16", dtype)


def element_size(v2: str) -> int | None:
    """Return the bytes of one element, None for BYTES. Raises ConfigError where the name is unknown."""
    return _row(v2).element_size
