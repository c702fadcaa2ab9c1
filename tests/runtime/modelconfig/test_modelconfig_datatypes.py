import builtins
import sys

import pytest
from tritonclient.grpc import model_config_pb2 as pb

from argosy_runtime.modelconfig import datatypes
from argosy_runtime.modelconfig.errors import ConfigError


def test_the_table_covers_every_datatype_of_the_schema() -> None:
    schema = {name for name, number in pb.DataType.items() if number != pb.TYPE_INVALID}
    assert {row.config_name for row in datatypes.TABLE} == schema


@pytest.mark.parametrize("row", datatypes.TABLE, ids=lambda row: row.v2)
def test_every_row_reads_the_same_in_every_direction(row: datatypes.Datatype) -> None:
    assert datatypes.v2_name(datatypes.config_type(row.v2)) == row.v2
    dtype = datatypes.numpy_dtype(row.v2)
    assert datatypes.element_size(row.v2) == (None if row.v2 == "BYTES" else dtype.itemsize)


def test_unknown_types_are_named() -> None:
    with pytest.raises(ConfigError, match="unknown datatype 'FP128', expected one of BOOL, "):
        datatypes.config_type("FP128")
    with pytest.raises(ConfigError, match="TYPE_INVALID"):
        datatypes.v2_name(pb.TYPE_INVALID)


def test_bf16_without_ml_dtypes_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "ml_dtypes":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "ml_dtypes", raising=False)
    monkeypatch.delitem(datatypes._NUMPY, "BF16", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="ml_dtypes"):
        datatypes.numpy_dtype("BF16")
    assert datatypes.element_size("BF16") == 2
