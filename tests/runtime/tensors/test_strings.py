"""The one codec of BYTES tensors: it reads what it writes, and reports where bytes end too early."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.tensors import StringsError, join_strings, split_strings, string_array, string_elements

ELEMENTS = st.lists(st.binary(max_size=20), max_size=8)


@given(ELEMENTS)
def test_what_is_written_is_read(elements: list[bytes]) -> None:
    data = join_strings(elements)
    assert split_strings(data) == split_strings(memoryview(data)) == elements
    assert string_elements(string_array(elements, (len(elements),))) == elements


@given(ELEMENTS.filter(bool), st.data())
def test_bytes_that_end_within_an_element_are_reported(elements: list[bytes], data: st.DataObject) -> None:
    full = join_strings(elements)
    ends = [len(join_strings(elements[:count])) for count in range(len(elements) + 1)]
    cut = data.draw(st.integers(0, len(full)).filter(lambda at: at not in ends))
    begun = max(end for end in ends if end < cut)
    with pytest.raises(StringsError) as error:
        split_strings(full[:cut])
    if cut - begun < 4:
        assert (error.value.left, error.value.length) == (cut - begun, None)
    else:
        assert (error.value.left, error.value.length) == (cut - begun - 4, len(elements[ends.index(begun)]))


def test_no_more_is_read_than_one_beyond_what_is_desired() -> None:
    assert split_strings(join_strings([b"a"] * 100), most=2) == [b"a"] * 3


def test_elements_that_are_not_bytes_go_through_str_as_tritons_do() -> None:
    assert string_elements(np.array([["é", b"b"], [3, 1.5]], dtype=np.object_)) == ["é".encode(), b"b", b"3", b"1.5"]
