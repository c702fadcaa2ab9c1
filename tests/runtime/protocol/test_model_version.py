"""Versions as requests name them."""

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.protocol.grpc.request import canonical_version
from argosy_runtime.repository.folders.layout import is_version
from argosy_runtime.repository.records import ModelRecord, VersionRecord, find_version

LARGEST = str(2**63 - 1)
TOO_LARGE = [str(2**63), "9" * 4000, "9" * 5000]


def test_zeros_before_a_version_do_not_count():
    assert [canonical_version(version) for version in ("", "007", "0", LARGEST)] == ["", "7", "0", LARGEST]


@pytest.mark.parametrize("version", ["x", "-1", *TOO_LARGE])
def test_what_is_no_version_is_an_invalid_argument(version):
    with pytest.raises(ServingError, match="version should be an integral value > 0") as caught:
        canonical_version(version)
    assert caught.value.kind is ErrorKind.INVALID_ARG


@pytest.mark.parametrize("version", ["x", *TOO_LARGE])
def test_no_model_is_queried_for_such_a_version(version):
    record = ModelRecord("m", registered=True)
    record.versions[1] = VersionRecord()
    with pytest.raises(ServingError, match="version should be an integral value > 0") as caught:
        find_version({"m": record}, "m", version)
    assert caught.value.kind is ErrorKind.INVALID_ARG


def test_a_folder_of_such_a_name_is_no_version():
    assert is_version(LARGEST)
    assert not any(is_version(name) for name in TOO_LARGE)
