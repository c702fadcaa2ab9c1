"""The response cache: which requests have one key, and which responses stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.messages import InferRequest, RequestTemplate, ResponseTemplate, Tensor, TensorSpec
from argosy_runtime.scheduling.response_cache.cache import ENTRY_BYTES, CachedResponse, ResponseCache
from argosy_runtime.scheduling.response_cache.keys import RequestKeys
from argosy_runtime.tensors.device_arrays import DeviceArray
from argosy_runtime.tensors.tensor import device_tensor

SECRET = bytes(range(32))
KEYS = RequestKeys(SECRET)


def request(*tensors: Tensor, **fields: object) -> InferRequest:
    return InferRequest("m", {tensor.name: tensor for tensor in tensors}, **fields)


def floats(name: str, *shape: int) -> Tensor:
    return Tensor(name, "FP32", np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


A, B = floats("A", 1, 4), floats("B", 2)


def test_a_key_is_of_what_the_model_sees():
    same = request(A, B, parameters={"x": 1, "y": "z"}, requested_outputs=("Y",))
    assert KEYS.key(same) == KEYS.key(
        request(B, A, parameters={"y": "z", "x": 1}, requested_outputs=("Y",), id="other", timeout_us=5, priority=2)
    )


@pytest.mark.parametrize(
    "other",
    [
        request(A),
        request(A, floats("B", 2, 1)),
        request(A, Tensor("B", "INT32", B.array.view(np.int32))),
        request(A, Tensor("B", "FP32", B.array + 1)),
        request(floats("C", 1, 4), B),
        request(floats("A", 2, 2), B),
        request(A, B, requested_outputs=("Y",)),
        request(A, B, parameters={"x": 1}),
        request(A, B, parameters={"x": True}),
        request(A, B, parameters={"x": "1"}),
        request(A, B, sequence_id=1),
        request(A, B, sequence_id="1"),
        request(A, B, sequence_start=True),
    ],
    ids=range(13),
)
def test_whatever_else_a_model_sees_is_another_key(other):
    assert KEYS.key(other) != KEYS.key(request(A, B))


def test_all_outputs_are_as_good_as_none_in_particular():
    keys = RequestKeys(SECRET, ("Y", "Z"))
    assert keys.key(request(A, requested_outputs=("Y", "Z"))) == keys.key(request(A))
    assert keys.key(request(A, requested_outputs=("Z", "Y"))) != keys.key(request(A))


def test_strings_with_other_bounds_are_others():
    one, other = (
        request(Tensor("A", "BYTES", np.array(words, object)), Tensor("B", "BYTES", np.array([b"x"], object)))
        for words in ([b"ab", b"c"], [b"a", b"bc"])
    )
    assert KEYS.key(one) != KEYS.key(other)


@given(st.permutations(["A", "B", "C"]), st.lists(st.binary(max_size=8), min_size=3, max_size=3))
def test_a_template_changes_no_key(order, contents):
    tensors = {
        name: Tensor(name, "BYTES", np.array([content], object)) for name, content in zip("ABC", contents, strict=True)
    }
    plain = request(*tensors.values(), parameters={"p": 1.5})
    listed = request(*[tensors[name] for name in order], parameters={"p": 1.5})
    templated = RequestTemplate(listed).request("id", [tensors[name].data for name in order])
    keys = RequestKeys(SECRET)
    assert keys.key(templated) == keys.key(plain) == keys.key(templated)
    templated.join(1, True, False)
    plain.join(1, True, False)
    assert keys.key(templated) == keys.key(plain) != keys.key(listed)


def test_another_load_has_other_keys():
    assert RequestKeys(bytes(32)).key(request(A)) != RequestKeys(SECRET).key(request(A))


class OnDevice:
    """Memory that must not be read."""

    dtype = np.dtype(np.float32)

    def read(self, offset: int, size: int) -> np.ndarray:
        raise AssertionError("it was copied to the host")


def test_a_tensor_in_a_devices_memory_has_no_key():
    tensor = device_tensor("A", "FP32", DeviceArray(OnDevice(), (4,), 0))
    assert KEYS.key(request(tensor)) is None


TEMPLATE = ResponseTemplate([TensorSpec("Y", "UINT8", (1,))], {})


def entry(size: int) -> CachedResponse:
    return CachedResponse(TEMPLATE, [bytes(size)])


def test_what_was_not_read_for_the_longest_time_goes_first():
    cache = ResponseCache(3 * (ENTRY_BYTES + 10))
    for key in (b"a", b"b", b"c"):
        assert cache.insert(key, entry(10))
    assert cache.lookup(b"a") is not None
    assert cache.insert(b"d", entry(10))
    assert [key in cache for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]


def test_what_is_larger_than_the_cache_moves_nothing():
    cache = ResponseCache(ENTRY_BYTES + 100)
    cache.insert(b"a", entry(100))
    assert not cache.insert(b"b", entry(101))
    assert b"a" in cache


def test_of_two_answers_to_equal_requests_the_first_stays():
    cache = ResponseCache(10_000)
    first = entry(1)
    cache.insert(b"a", first)
    assert not cache.insert(b"a", entry(2))
    assert cache.lookup(b"a") is first


@given(
    st.integers(0, 5000),
    st.lists(st.tuples(st.sampled_from("ilc"), st.integers(0, 9), st.integers(0, 900)), max_size=60),
)
def test_it_never_holds_more_than_its_bytes_and_counts_them_right(capacity, steps):
    cache, sizes = ResponseCache(capacity), {}
    order: list[bytes] = []
    for what, number, size in steps:
        key = bytes([number])
        if what == "i" and key not in order and entry(size).nbytes <= capacity:
            sizes[key] = entry(size).nbytes
            order.append(key)
            while sum(sizes[one] for one in order) > capacity:
                order.pop(0)
        if what == "i":
            cache.insert(key, entry(size))
        elif what == "l":
            assert (cache.lookup(key) is not None) == (key in order)
            if key in order:
                order.remove(key)
                order.append(key)
        assert cache.used == sum(sizes[one] for one in order) <= capacity
        assert len(cache) == len(order)
