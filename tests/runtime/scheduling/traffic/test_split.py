"""The split of a model's requests: weights, keys, sequences, versions that do not answer, changes."""

from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.scheduling.traffic.test_keys import Sent

from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, Sticky, VersionTraffic
from argosy_runtime.scheduling.traffic.split import NONE, Chosen, TrafficSplit

CANARY = VersionTraffic({1: 950_000, 2: 50_000})


def request(sequence: int | str = 0, start: bool = False, end: bool = False, **headers: str) -> InferRequest:
    made = InferRequest("m", {}, sequence_id=sequence, sequence_start=start, sequence_end=end)
    made.origin = Sent(headers)
    return made


def choose(split: TrafficSplit, sent: InferRequest, down: Collection[int] = (), restarts: Collection[int] = ()) -> int:
    """Return the version of a request while some are `down`, and some are being restarted."""
    return split.choose(sent, lambda version: version not in (*down, *restarts), lambda version: version not in down)


def test_of_twenty_requests_in_a_row_one_goes_to_the_version_of_five_percent():
    split = TrafficSplit("m", CANARY)
    chosen = [choose(split, request()) for _ in range(1000)]
    assert all(chosen[start : start + 20].count(2) == 1 for start in range(980))
    assert split.routed[Chosen.WEIGHT] == {1: 950, 2: 50}


def test_a_version_that_does_not_answer_loses_its_share_to_the_highest_weight():
    split = TrafficSplit("m", VersionTraffic({1: 700_000, 2: 200_000, 3: 100_000, 4: 0}))
    for down, expected in (
        ({3}, {1: 80, 2: 20}),
        ({1}, {2: 90, 3: 10}),
        ({1, 2, 3}, {4: 100}),
    ):
        chosen = Counter(choose(split, request(), down) for _ in range(100))
        assert chosen == expected


def test_without_any_version_that_answers_none_is_chosen_and_no_counter_grows():
    split = TrafficSplit("m", CANARY)
    assert choose(split, request(), (1, 2)) == NONE
    assert choose(split, request(7), (1, 2)) == NONE
    assert {sum(counts.values()) for counts in split.routed.values()} == {0}


def test_a_version_that_is_being_restarted_is_spared_unless_no_other_answers():
    split = TrafficSplit("m", VersionTraffic({1: 500_000, 2: 500_000}))
    assert {choose(split, request(), restarts=(2,)) for _ in range(10)} == {1}
    assert {choose(split, request(), down=(1,), restarts=(2,)) for _ in range(10)} == {2}


def test_a_candidate_keeps_to_its_share_while_the_stable_version_is_being_restarted():
    split = TrafficSplit("m", VersionTraffic({1: 940_000, 2: 50_000, 3: 10_000}))
    chosen = Counter(choose(split, request(), restarts=(1,)) for _ in range(100))
    assert chosen == {1: 94, 2: 5, 3: 1}
    chosen = Counter(choose(split, request(), restarts=(1, 3)) for _ in range(100))
    assert chosen == {1: 95, 2: 5}
    assert {choose(split, request(), down=(1,)) for _ in range(10)} == {2}


def test_a_version_without_a_weight_gets_no_request_for_a_mere_restart_of_the_others():
    split = TrafficSplit("m", VersionTraffic({1: MILLIONTHS, 2: 0}))
    assert {choose(split, request(), restarts=(1,)) for _ in range(10)} == {1}
    assert {choose(split, request(), down=(1,)) for _ in range(10)} == {2}


def test_a_sequence_waits_for_its_version_to_be_restarted():
    split = TrafficSplit("m", VersionTraffic({1: 1, 2: MILLIONTHS - 1}))
    assert choose(split, request("s", start=True)) == 2
    assert choose(split, request("s"), restarts=(2,)) == 2
    assert choose(split, request("t", start=True), restarts=(2,)) == 2
    split.follow(VersionTraffic({1: MILLIONTHS - 1, 2: 1}))
    assert choose(split, request("u", start=True), restarts=(1,)) == 1


def test_at_weight_zero_not_one_more_request_comes():
    split = TrafficSplit("m", VersionTraffic({1: 500_000, 2: 500_000}))
    for _ in range(7):
        choose(split, request())
    split.follow(VersionTraffic({1: MILLIONTHS, 2: 0}))
    assert {choose(split, request()) for _ in range(100)} == {1}


def test_counts_go_on_where_weights_change():
    split = TrafficSplit("m", CANARY)
    for _ in range(20):
        choose(split, request())
    split.follow(VersionTraffic({1: MILLIONTHS, 3: 0}))
    choose(split, request())
    assert split.routed[Chosen.WEIGHT] == {1: 20, 2: 1, 3: 0}


weights = st.integers(0, MILLIONTHS).map(lambda weight: VersionTraffic({1: MILLIONTHS - weight, 2: weight}))


@given(st.lists(st.tuples(weights, st.integers(1, 50)), min_size=1, max_size=8))
def test_over_all_changes_of_weights_the_new_version_gets_what_it_was_to_get(steps):
    split = TrafficSplit("m", steps[0][0])
    owed = 0
    for traffic, count in steps:
        split.follow(traffic)
        for _ in range(count):
            version = choose(split, request())
            owed += traffic.weights[2] - MILLIONTHS * (version == 2)
            assert traffic.weights[version] > 0
        if traffic.weights[2] in (0, MILLIONTHS):
            owed = 0  # nothing is made up for later: at 0 it gets none, at once
        assert abs(owed) <= MILLIONTHS / 2


def test_requests_with_the_same_key_go_to_the_same_version_and_do_not_change_the_interleave():
    split = TrafficSplit("m", VersionTraffic({1: 500_000, 2: 500_000}, (Sticky(header="user"),)))
    users = {f"u{number}": {choose(split, request(user=f"u{number}")) for _ in range(3)} for number in range(40)}
    assert {len(versions) for versions in users.values()} == {1}
    assert set().union(*users.values()) == {1, 2}
    assert sum(split.routed[Chosen.KEY].values()) == 120
    assert [choose(split, request()) for _ in range(4)] == [1, 2, 1, 2]
    assert split.routed[Chosen.WEIGHT] == {1: 2, 2: 2}


def test_a_sequence_ends_where_it_began_though_the_weights_have_changed():
    split = TrafficSplit("m", VersionTraffic({1: 500_000, 2: 500_000}))
    began = {sequence: choose(split, request(sequence, start=True)) for sequence in range(1, 41)}
    assert set(began.values()) == {1, 2}
    split.follow(VersionTraffic({1: MILLIONTHS, 2: 0}))
    assert {sequence: choose(split, request(sequence)) for sequence in began} == began
    ended = {sequence: choose(split, request(sequence, end=True)) for sequence in began}
    assert ended == began
    assert {choose(split, request(sequence, start=True)) for sequence in began} == {1}


def test_a_sequence_whose_version_has_left_goes_on_at_another_and_stays_there():
    split = TrafficSplit("m", VersionTraffic({1: MILLIONTHS, 2: 0}))
    split.follow(VersionTraffic({1: 0, 2: MILLIONTHS}))
    assert choose(split, request("s", start=True)) == 2
    assert choose(split, request("s"), (2,)) == 1
    assert choose(split, request("s")) == 1, "it does not jump back in its middle"


def test_a_sequence_id_without_a_start_is_a_key():
    split = TrafficSplit("m", VersionTraffic({1: 500_000, 2: 500_000}))
    chosen = {sequence: choose(split, request(sequence)) for sequence in range(1, 41)}
    assert chosen == {sequence: choose(split, request(sequence)) for sequence in chosen}
    split.follow(VersionTraffic({1: MILLIONTHS, 2: 0}))
    assert {choose(split, request(sequence)) for sequence in chosen} == {1}
