"""Names of servers: the lowest free number comes first, and 2 comes before 10."""

from itertools import islice

from argosy.planning.server_names import free_names, natural


def test_free_names_fill_the_gaps_first() -> None:
    assert list(islice(free_names("p", {"p-0", "p-2", "q-1"}), 3)) == ["p-1", "p-3", "p-4"]


def test_names_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["p-10", "p-2", "p-x", "a-3"], key=natural) == ["a-3", "p-2", "p-10", "p-x"]
