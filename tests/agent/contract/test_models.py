"""The order in which models are loaded."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract import RenderedModel, in_load_order

LETTERS = "abcdef"
STEPS = st.dictionaries(st.sampled_from(LETTERS), st.sets(st.sampled_from(LETTERS + "z")))


def models(steps: dict[str, set[str]]) -> tuple[RenderedModel, ...]:
    """Return models by name, with the models that each needs."""
    return tuple(RenderedModel(name, "", {}, dict.fromkeys(needed, 1)) for name, needed in steps.items())


@given(STEPS)
def test_all_come_once_behind_what_they_use_and_by_name_otherwise(steps: dict[str, set[str]]) -> None:
    acyclic = {name: {step for step in needed if step > name} for name, needed in steps.items()}
    order = [model.name for model in in_load_order(models(acyclic))]
    assert sorted(order) == sorted(acyclic)
    for at, name in enumerate(order):
        ready = [item for item in order[at:] if not acyclic[item] & set(order[at:])]
        assert name == min(ready, key=lambda item: (bool(acyclic[item]), item))


@given(STEPS)
def test_a_cycle_ends(steps: dict[str, set[str]]) -> None:
    assert sorted(model.name for model in in_load_order(models(steps))) == sorted(steps)


def test_a_chain_of_thousands_is_ordered() -> None:
    chain = {f"m{number:04d}": {f"m{number + 1:04d}"} for number in range(5000)}
    assert [model.name for model in in_load_order(models(chain))] == sorted(chain, reverse=True)
