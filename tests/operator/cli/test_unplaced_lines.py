"""What fits nowhere is one line a reason, with the first groups' names."""

from collections.abc import Sequence

import pytest

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.explanation.remedies import remedy_lines
from argosy.cli.planning.plan_table import unplaced_lines
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.plan import FleetPlan, PoolPlan, Unplaced

SHORT = "{} needs 90 GiB on one GPU; the largest usable is 63.7 GiB"


def lines(*unplaced: Unplaced, pools: Sequence[str] = ("default/chat",)) -> list[str]:
    return unplaced_lines(FleetPlan(tuple(PoolPlan(PoolKey(pool), (), unplaced, 0, 0, 0) for pool in pools)))


def model(name: str, message: str = SHORT, reason: str = "GpuTooSmall") -> Unplaced:
    return Unplaced(name, (name,), reason, message.format(name))


def test_one_model_keeps_its_message() -> None:
    assert lines(model("m1")) == [f"m1 fits nowhere (GpuTooSmall): {SHORT.format('m1')}"]


def test_models_with_equal_needs_share_a_line() -> None:
    assert lines(model("m1"), model("m10")) == [f"m1 and m10 fit nowhere (GpuTooSmall): {SHORT.format('each')}"]
    names = "m0, m1, m2, m3, m4 and 995 more"
    expected = [f"{names} fit nowhere (GpuTooSmall): {SHORT.format('each')}"]
    assert lines(*(model(f"m{number}") for number in range(1000))) == expected


def test_other_numbers_and_other_reasons_are_other_lines() -> None:
    others = model("m2", SHORT.replace("90", "91")), model("m3", reason="NoNvlink")
    assert [line.split(" ", 1)[0] for line in lines(model("m1"), *others)] == ["m1", "m2", "m3"]


def test_replicas_of_a_group_are_summed() -> None:
    replicas = [
        Unplaced("chat", ("a", "b"), "NoServer", f"replica {number} of chat needs a server of its own")
        for number in (1, 2, 3)
    ]
    assert lines(*replicas) == ["chat x3 fits nowhere (NoServer): replica 1 of chat needs a server of its own"]
    other = model("m", "replica 7 of {} needs a server of its own", "NoServer")
    assert lines(*replicas, other) == ["chat x3 and m fit nowhere (NoServer): each needs a server of its own"]


def test_a_name_within_another_word_stays() -> None:
    message = "{0} needs 1 GiB on node {0}-a"
    assert lines(model("m", message), model("n", message)) == [
        "m fits nowhere (GpuTooSmall): m needs 1 GiB on node m-a",
        "n fits nowhere (GpuTooSmall): n needs 1 GiB on node n-a",
    ]


@pytest.mark.parametrize(
    ("count", "named"), [(1, "it"), (2, "m0 or m1"), (3, "m0, m1 or m2"), (5, "m0, m1, m2 or 2 more")]
)
def test_a_remedy_names_the_first_of_those_that_it_is_for(count: int, named: str) -> None:
    keys = [(PoolKey("default/p"), f"m{at}") for at in range(count)]
    remedy = Remedy(RemedyKind.NODE, "one more node like a", "--with-node a")
    (line,) = remedy_lines(dict.fromkeys(keys, (remedy,)), keys, 4)
    assert line == f"  {named} would fit with: one more node like a (try --with-node a)"
