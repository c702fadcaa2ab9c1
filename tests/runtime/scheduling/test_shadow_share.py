"""The share of requests that are copied to a shadow, and sequences."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS
from argosy_runtime.scheduling.shadow_share import MOST_SEQUENCES, ShadowShare


def _part(sequence: int, start: bool = False, end: bool = False) -> InferRequest:
    return InferRequest("model", {}, sequence_id=sequence, sequence_start=start, sequence_end=end)


@given(st.integers(1, MILLIONTHS), st.integers(0, 300), st.integers(0, 300))
def test_the_share_is_exact_over_any_window(share: int, before: int, window: int) -> None:
    chooser = ShadowShare(share)
    for _ in range(before):
        chooser.chooses(InferRequest("model", {}))
    chosen = sum(chooser.chooses(InferRequest("model", {})) for _ in range(window))
    assert abs(chosen - window * share / MILLIONTHS) < 1


@given(st.integers(1, MILLIONTHS), st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["start", "", "end"]))))
def test_of_a_sequence_all_requests_are_chosen_or_none(share: int, parts: list[tuple[int, str]]) -> None:
    chooser = ShadowShare(share)
    begun: dict[int, bool] = {}
    for sequence, kind in parts:
        chosen = chooser.chooses(_part(sequence, kind == "start", kind == "end"))
        if kind == "start":
            begun[sequence] = chosen
        else:
            assert chosen is begun.get(sequence, False)
        if kind == "end":
            begun.pop(sequence, None)


def test_a_sequence_ends_with_a_request_that_was_skipped() -> None:
    chooser = ShadowShare(MILLIONTHS)
    assert chooser.chooses(_part(7, start=True))
    chooser.give_up(_part(7))
    assert not chooser.chooses(_part(7))
    assert chooser.chooses(_part(7, start=True))


def test_sequences_that_never_end_take_bounded_memory() -> None:
    chooser = ShadowShare(MILLIONTHS)
    for sequence in range(1, MOST_SEQUENCES + 2):
        assert chooser.chooses(_part(sequence, start=True))
    assert not chooser.chooses(_part(1))
    assert chooser.chooses(_part(MOST_SEQUENCES + 1))
