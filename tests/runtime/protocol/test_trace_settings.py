"""The trace extension's messages: what they change, and Triton's texts for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.protocol.trace_settings import changes_of_grpc, changes_of_json, settings_message
from argosy_runtime.traces import TraceLevel


def grpc(**settings: list[str]) -> dict[str, int | None]:
    """Return the changes of a message with these settings."""
    request = pb.TraceSettingRequest()
    for name, values in settings.items():
        request.settings[name].value.extend(values)
    return changes_of_grpc(request.settings)


def test_what_is_named_changes_and_null_takes_back():
    document = {"trace_level": ["TIMESTAMPS", "TENSORS"], "trace_rate": "5", "trace_count": None, "unknown": 3}
    both = TraceLevel.TIMESTAMPS | TraceLevel.TENSORS
    assert changes_of_json(document) == {"level": both, "rate": 5, "count": None}
    assert grpc(trace_level=["TIMESTAMPS", "TENSORS"], trace_rate=["5"], trace_count=[]) == changes_of_json(document)
    assert changes_of_json({}) == {}
    assert grpc() == {}


def test_unknown_levels_count_for_nothing():
    assert changes_of_json({"trace_level": ["MAX"]}) == {}
    assert changes_of_json({"trace_level": []}) == {}
    assert changes_of_json({"trace_level": ["MAX", "TENSORS"]}) == {"level": TraceLevel.TENSORS}


@pytest.mark.parametrize(("text", "value"), [("5", 5), (" 7x", 7), ("+3", 3), ("-1", 2**32 - 1), ("0", 0)])
def test_numbers_are_read_as_by_c(text: str, value: int):
    assert changes_of_json({"trace_rate": text}) == {"rate": value}
    assert grpc(log_frequency=[text]) == {"log_frequency": value}


@pytest.mark.parametrize(
    ("document", "kind", "message"),
    [
        ({"trace_file": "x"}, ErrorKind.UNSUPPORTED, "trace file location can not be updated through network protocol"),
        ({"trace_level": ["OFF", "TENSORS"]}, ErrorKind.INVALID_ARG, "Expect only one trace level 'OFF' is specified"),
        ({"trace_rate": "x"}, ErrorKind.INVALID_ARG, "Unable to parse 'trace_rate', got: x"),
        (
            {"trace_rate": "99999999999"},
            ErrorKind.INVALID_ARG,
            "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 99999999999",
        ),
        (
            {"trace_count": "99999999999"},
            ErrorKind.INVALID_ARG,
            "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 99999999999",
        ),
        (
            {"trace_count": "9" * 5000},
            ErrorKind.INVALID_ARG,
            f"Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: {'9' * 5000}",
        ),
        (
            {"trace_count": "-2"},
            ErrorKind.INVALID_ARG,
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-2",
        ),
        ({"trace_rate": 5}, ErrorKind.INTERNAL, "attempt to access JSON non-string as string"),
        ({"trace_level": "OFF"}, ErrorKind.INTERNAL, "attempt to access JSON non-array as array"),
    ],
)
def test_wrong_settings_have_tritons_texts(document: dict[str, object], kind: ErrorKind, message: str):
    with pytest.raises(ServingError) as refused:
        changes_of_json(document)
    assert (refused.value.kind, refused.value.message) == (kind, message)


def test_grpc_has_texts_of_its_own():
    with pytest.raises(ServingError, match="expect only 1 value for 'trace_rate'"):
        grpc(trace_rate=["1", "2"])
    with pytest.raises(ServingError, match="Expecting value >= -1, got: -2"):
        grpc(trace_count=["-2"])


@given(
    st.dictionaries(
        st.sampled_from(["trace_level", "trace_rate", "trace_count", "log_frequency"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
    )
)
def test_any_json_is_read_or_refused(document: dict[str, object]):
    try:
        changes = changes_of_json(document)
    except ServingError:
        return
    assert changes.keys() <= {"level", "rate", "count", "log_frequency"}
    assert all(value is None or -1 <= value < 2**32 for value in changes.values())


def test_settings_become_a_message():
    message = settings_message({"trace_level": ["OFF"], "trace_rate": "1000"})
    assert {name: list(value.value) for name, value in message.settings.items()} == {
        "trace_level": ["OFF"],
        "trace_rate": ["1000"],
    }
