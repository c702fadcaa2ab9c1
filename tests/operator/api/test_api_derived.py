"""Values that are cached with the specs that they are derived from."""

import gc
from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given
from tests.operator.planning.declared import model

from argosy.api.values.derived import cached_with_spec
from argosy.api.values.meta import PoolMember

_NAMES = ("a", "b")


def _text(member: PoolMember, at: int) -> str:
    return f"{member.name} {member.spec.replicas} {at}"


@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.integers(1, 4), st.integers(0, 2), st.booleans()), max_size=60))
def test_a_value_is_that_of_the_function_whatever_changed(calls: Sequence[tuple[str, int, int, bool]]) -> None:
    cached, models = cached_with_spec(_text), {name: model(name) for name in _NAMES}
    for name, replicas, at, is_new in calls:
        if is_new:
            models[name] = model(name, replicas=replicas)
        assert cached(models[name], at) == _text(models[name], at)


def test_an_unchanged_spec_is_derived_from_once_however_many_there_are() -> None:
    models, requested = [model(f"m-{number}") for number in range(5000)], []
    cached = cached_with_spec(lambda member: requested.append(member.name))
    for _ in range(2):
        for one in models:
            cached(one.model_copy(update={"metadata": one.metadata}))
    assert requested == [one.name for one in models]


def test_two_members_with_one_spec_have_values_of_their_own() -> None:
    cached, one = cached_with_spec(_text), model("a")
    other = one.model_copy(update={"metadata": model("b").metadata})
    assert (cached(one, 0), cached(other, 0)) == ("a None 0", "b None 0")


def test_values_are_gone_with_their_spec() -> None:
    class _Large:
        alive = 0

        def __init__(self) -> None:
            _Large.alive += 1

        def __del__(self) -> None:
            _Large.alive -= 1

    cached, one = cached_with_spec(lambda _, at: _Large()), model("a")
    for at in range(1000):
        cached(one, at)
    assert 0 < _Large.alive <= 256
    del one
    gc.collect()
    assert _Large.alive == 0
