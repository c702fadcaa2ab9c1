"""The order of a request's inputs in Triton, as GCC's `std::unordered_map` has it."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.modelconfig.input_order import input_order

# Made by a program in C++ that inserts the names into a map and prints it.
OF_GCC = (
    "39 38 40 36 37 35 13 17 10 3 12 1 30 6 5 20 7 25 4 23 24 34 8 18 14 15 33 32 16 11 19 9 26 28 21 29 2 22 31 27"
)


def test_it_is_that_of_gccs_map():
    names = [f"input_name_{number}" for number in range(1, 41)]
    assert input_order(names) == [f"input_name_{number}" for number in OF_GCC.split()]


def test_of_two_the_last_is_first():
    assert input_order(["INPUT0", "INPUT1"]) == ["INPUT1", "INPUT0"]


@given(st.lists(st.text(max_size=20), max_size=60))
def test_every_name_is_there_once(names):
    assert sorted(input_order(names)) == sorted(set(names))
