"""The bounded cache keeps the newest keys, whatever is looked up or replaced meanwhile."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.fifo_cache import FifoCache

KEYS = st.integers(0, 9)


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from(["get", "put", "remove", "clear"]), KEYS)))
def test_it_has_the_newest_keys(capacity: int, steps: list[tuple[str, int]]) -> None:
    cache = FifoCache[int, int](capacity)
    expected: list[tuple[int, int]] = []
    for number, (action, key) in enumerate(steps):
        values = dict(expected)
        if action == "put" and key in values:
            assert cache.put(key, number) is None
            expected = [(other, number if other == key else value) for other, value in expected]
        elif action == "put":
            evicted = expected.pop(0) if len(expected) == capacity else None
            assert cache.put(key, number) == evicted
            expected.append((key, number))
        elif action == "remove":
            cache.remove(key)
            expected = [pair for pair in expected if pair[0] != key]
        elif action == "clear":
            cache.clear()
            expected = []
        assert [(other, cache.get(other)) for other in range(10) if other in cache] == sorted(expected)
        assert len(cache) == len(expected)
        assert cache.get(key) == dict(expected).get(key)
