"""A revision of an ensemble is its spec with the versions of its steps, and has a number of its own."""

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble

from argosy.planning.pinned import PinnedEnsemble, numbered_ensembles, pins_of_steps, revision_number

PAIR = ensemble("e", "tokenizer", "model", version=3)


def test_a_revision_names_the_version_of_every_step() -> None:
    pinned = PinnedEnsemble.of(PAIR, 7, {"tokenizer": 1, "model": 2})
    assert (pinned.spec.version, pinned.pins) == (7, {"tokenizer": 1, "model": 2})
    assert (pinned.name, pinned.identity) == (PAIR.name, PAIR.identity)
    assert PAIR.spec.steps[0].version is None


def test_equal_revisions_have_one_spec_object() -> None:
    pins = {"tokenizer": 1, "model": 2}
    assert PinnedEnsemble.of(PAIR, 7, pins).spec is PinnedEnsemble.of(PAIR, 7, dict(pins)).spec
    assert PinnedEnsemble.of(PAIR, 8, pins).spec is not PinnedEnsemble.of(PAIR, 7, pins).spec


def test_a_stored_revision_is_one_again_and_a_declared_ensemble_is_not() -> None:
    pinned = PinnedEnsemble.of(PAIR, 7, {"tokenizer": 1, "model": 2})
    stored = PAIR.model_copy(update={"spec": pinned.spec})
    assert isinstance(PinnedEnsemble.restored(stored), PinnedEnsemble)
    assert PinnedEnsemble.restored(PAIR) is PAIR


def test_a_step_runs_the_version_that_it_names_or_the_current_one() -> None:
    step = {"model": "model", "version": 5, "inputs": {"X": "T0"}, "outputs": {"Y": "T1"}}
    named = ensemble("e", "model", steps=[step])
    assert pins_of_steps(named, {"model": 9}) == {"model": 5}
    assert pins_of_steps(named, {"model": 9}, numbered={"model"}) == {"model": 9}
    assert pins_of_steps(PAIR, {"tokenizer": 1, "model": 2}) == {"tokenizer": 1, "model": 2}
    assert pins_of_steps(PAIR, {"tokenizer": 1}) is None


def test_what_a_released_ensemble_runs_and_what_runs_it_is_numbered_the_inner_ones_first() -> None:
    ensembles = {
        item.name: item
        for item in (ensemble("a", "b", "m"), ensemble("b", "c"), ensemble("c", "m"), ensemble("other", "c"))
    }
    ensembles["alone"] = ensemble("alone", "m")
    assert numbered_ensembles(ensembles, ["a"]) == ("c", "b", "a", "other")
    assert numbered_ensembles(ensembles, ["c"]) == ("c", "b", "a", "other")
    assert numbered_ensembles(ensembles, ["alone"]) == ("alone",)
    assert numbered_ensembles(ensembles, ["gone"]) == ()


def test_a_circle_of_ensembles_is_not_numbered() -> None:
    ensembles = {item.name: item for item in (ensemble("a", "b"), ensemble("b", "a"))}
    assert numbered_ensembles(ensembles, ["a"]) == ()


def test_a_declared_version_is_taken_where_it_is_the_highest() -> None:
    assert revision_number("new", 5, {"old": 4}) == 5
    assert revision_number("new", 1, {}) == 1
    assert revision_number("new", 1, {"old": 1}) == 2
    assert revision_number("new", 1, {"old": 1}, taken=(6,)) == 7


def test_a_revision_that_comes_back_has_its_former_number() -> None:
    assert revision_number("old", 9, {"old": 1, "later": 2}) == 1


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 5), st.frozensets(st.integers(1, 9))), max_size=20)
)
def test_no_two_revisions_ever_have_one_number(pushes: list[tuple[str, int, frozenset[int]]]) -> None:
    numbers: dict[str, int] = {}
    for name, declared, taken in pushes:
        returns = name in numbers
        number = revision_number(name, declared, numbers, taken)
        assert returns or number not in taken
        numbers[name] = number
    assert len(set(numbers.values())) == len(numbers)
