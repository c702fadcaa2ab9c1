"""Every datatype goes through the server and comes back as it was, by each client."""

import numpy as np
import numpy.typing as npt
import pytest
from tests.clients.four import NUMPY_TYPES, FourClient


def _edges(datatype: str) -> npt.NDArray[np.generic]:
    """Return the values at which a codec breaks."""
    if datatype == "BOOL":
        return np.array([True, False, True])
    if datatype == "BYTES":
        return np.array([b"", b"text", "gr\u00fc\u00df".encode(), b"\x00\xff\xfe", b"x" * 70000], np.object_)
    kind = np.dtype(NUMPY_TYPES[datatype])
    if kind.kind == "f":
        return np.array([0, -0.0, 1.5, np.finfo(kind).max, np.finfo(kind).tiny, np.inf, -np.inf, np.nan], kind)
    return np.array([0, 1, np.iinfo(kind).min, np.iinfo(kind).max], kind)


def _same(got: npt.NDArray[np.generic], sent: npt.NDArray[np.generic]) -> bool:
    if sent.dtype == np.object_:
        return list(got) == list(sent)
    return got.dtype == sent.dtype and got.tobytes() == sent.tobytes()


@pytest.mark.parametrize("datatype", [name for name in NUMPY_TYPES if name != "BF16"])
def test_binary(client: FourClient, datatype: str) -> None:
    label = "STRING" if datatype == "BYTES" else datatype
    sent = _edges(datatype)
    result = client.infer("every_type", [client.tensor(f"IN_{label}", datatype, sent)])
    assert _same(result.as_numpy(f"OUT_{label}"), sent)


@pytest.mark.parametrize("datatype", [name for name in NUMPY_TYPES if name not in ("BF16", "FP16")])
@pytest.mark.parametrize("client", ["http", "http.aio"], indirect=True)
def test_json(client: FourClient, datatype: str) -> None:
    label = "STRING" if datatype == "BYTES" else datatype
    sent = _edges(datatype)
    if datatype == "BYTES":
        sent = sent[[0, 1, 2, 4]]  # JSON has text alone, no bytes
    if datatype.startswith("FP"):
        sent = sent[:5]  # nor has it infinities
    result = client.infer(
        "every_type",
        [client.tensor(f"IN_{label}", datatype, sent, binary_data=False)],
        outputs=[client.output(f"OUT_{label}", binary_data=False)],
    )
    got = result.as_numpy(f"OUT_{label}")
    if datatype == "BYTES":
        got = np.array([text.encode() for text in got], np.object_)
    assert _same(got, sent)


def test_bf16(client: FourClient) -> None:
    sent = [[1.0, -3.5, 2.0**100], [0.0, np.inf, -np.inf]]
    result = client.infer("half", [client.tensor("IN", "BF16", sent)])
    got = result.as_numpy("OUT").astype(np.float32)
    np.testing.assert_array_equal(got, np.float32([[0.5, -1.75, 2.0**99], [0.0, np.inf, -np.inf]]))


def test_several_types_in_one_request(client: FourClient) -> None:
    arrays = {"IN_INT8": ("INT8", [-128]), "IN_STRING": ("BYTES", [b"\x00", b""]), "IN_FP64": ("FP64", [1e-300])}
    result = client.infer("every_type", client.tensors(arrays))
    assert result.as_numpy("OUT_INT8").tolist() == [-128]
    assert result.as_numpy("OUT_STRING").tolist() == [b"\x00", b""]
    assert result.as_numpy("OUT_FP64").tolist() == [1e-300]


def test_bytes_with_two_dimensions(client: FourClient) -> None:
    sent = np.array([[b"a", b"bb"], [b"", b"\x01"]], np.object_)
    result = client.infer("bytes_identity", [client.tensor("INPUT0", "BYTES", sent)])
    assert result.as_numpy("OUTPUT0").tolist() == sent.tolist()


def test_an_empty_tensor(client: FourClient) -> None:
    result = client.infer("every_type", [client.tensor("IN_INT32", "INT32", [])])
    got = result.as_numpy("OUT_INT32")
    assert (got.shape, got.dtype) == ((0,), np.int32)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_a_large_tensor(client: FourClient) -> None:
    sent = np.arange(3_000_000, dtype=np.float32).reshape(2, -1)
    result = client.infer("identity", [client.tensor("INPUT0", "FP32", sent)])
    assert _same(result.as_numpy("OUTPUT0"), sent)
