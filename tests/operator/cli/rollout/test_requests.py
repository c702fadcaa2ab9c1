"""Which annotation each command sets, what it names, and why it would have no effect."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator.cli.rollout.bodies import NOW, ONE, THREE, TWO, body, held, promoted, stepping
from tests.operator.planning.declared import model_body

from argosy.api import parse_body
from argosy.cli.rollout import requests
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.requests import Request, RequestRefusedError
from argosy.planning.rollouts.requests import RolloutRequests
from argosy.rollout.requests import names
from argosy.rollout.state import Ending, FailedRevision, Phase, Record, Revision

AT = "2026-01-01T12:00:00Z"
BACK = Record(TWO, Ending.ROLLED_BACK, "12 of 300 requests failed", NOW)


def _member(*arguments: Any, **more: Any) -> Member:
    return Member.of(body(*arguments, **more))


def test_a_request_names_a_revision_and_the_time() -> None:
    assert requests.promote(_member(stepping()), NOW) == Request(
        "argosy.dev/promote",
        f"bbb2@{AT}",
        "revision bbb2 (version 2) is promoted without further proof: it gets all traffic",
    )
    assert requests.undo(_member(stepping()), NOW).value == f"bbb2@{AT}"
    assert requests.undo(_member(promoted()), NOW).value == f"bbb2@{AT}"
    assert requests.undo(_member(stepping()), NOW, "aaa1").value == f"bbb2@aaa1@{AT}"
    assert requests.retry(_member(held()), NOW).value == f"bbb2@{AT}"
    assert requests.pause(_member(stepping())) == Request(
        "argosy.dev/pause", "true", "paused: steps and their clocks stop; a candidate that fails is still taken back"
    )
    assert requests.resume(_member(stepping(), annotations={"argosy.dev/pause": "true"})).value is None


@pytest.mark.parametrize(
    ("request_of", "state", "revision"),
    [(requests.promote, stepping(), TWO), (requests.undo, promoted(), TWO), (requests.retry, held(), TWO)],
)
def test_the_state_machine_reads_what_is_written(
    request_of: Callable[..., Request], state: Any, revision: Revision
) -> None:
    request = request_of(_member(state), NOW)
    assert request.value is not None
    assert names(request.value, revision)
    assert not names(request.value, ONE)


def test_an_undo_names_where_to_go_back_to() -> None:
    request = requests.undo(_member(promoted()), NOW, "aaa1")
    resource, _ = parse_body(model_body("chat", 2, 0, {"annotations": {request.annotation: request.value}}))
    assert resource is not None
    read = RolloutRequests.of(resource)
    assert names(read.undo, TWO)
    assert read.undo_name == ONE.name
    assert read.undo_name == "aaa1"
    assert RolloutRequests(undo=f"bbb2@{AT}").undo_name == ""


def test_a_request_has_its_consequence_as_message() -> None:
    message = requests.undo(_member(promoted()), NOW).message
    assert message == (
        "revision bbb2 (version 2) is taken back, and revision aaa1 (version 1) serves until the spec changes: change "
        "it in Git, too"
    )
    loading = requests.promote(_member(stepping(phase=Phase.LOADING)), NOW).message
    assert loading.endswith("once it is loaded it gets all traffic")


def test_of_several_held_revisions_the_declared_one_is_tried_again() -> None:
    failed = (FailedRevision(THREE, "Crash", "", NOW), *held().failed)
    assert requests.retry(_member(held(failed=failed)), NOW).value == f"bbb2@{AT}"
    assert requests.retry(_member(held(failed=failed)), NOW, "ccc3").value == f"ccc3@{AT}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: requests.promote(_member(promoted()), NOW), "has no candidate to promote; it is Promoted"),
        (lambda: requests.promote(_member(None, rollout=None), NOW), "spec.rollout has neither steps nor shadow"),
        (lambda: requests.promote(_member(None), NOW), "has no status of a rollout yet"),
        (lambda: requests.undo(_member(held()), NOW), "is Held: what is declared is taken back already; revision aaa1"),
        (lambda: requests.undo(_member(promoted(former=None)), NOW), "has no former revision; change the spec in Git"),
        (lambda: requests.undo(_member(promoted()), NOW, "bbb2"), "is the one to be taken back"),
        (lambda: requests.undo(_member(promoted()), NOW, "zzz"), "no revision 'zzz'; known: aaa1"),
        (
            lambda: requests.undo(
                _member(stepping(candidate=THREE, history=(BACK,), failed=held().failed)), NOW, "bbb2"
            ),
            "bbb2 failed before and is not gone back to; declare it, and then: argosy rollout retry chat --revision",
        ),
        (lambda: requests.retry(_member(promoted()), NOW), "has no held revision"),
        (
            lambda: requests.retry(_member(promoted(failed=held().failed)), NOW),
            "is Promoted: what is declared is not held. Held before: bbb2",
        ),
        (lambda: requests.retry(_member(held()), NOW, "zzz"), "no revision 'zzz'; known: bbb2"),
        (lambda: requests.resume(_member(stepping())), "is not paused"),
        (
            lambda: requests.resume(_member(stepping(), rollout={"paused": True})),
            "spec.rollout.paused is true; set it to false where it is declared",
        ),
        (
            lambda: requests.pause(_member(stepping(), annotations={"argosy.dev/pause": "true"})),
            "is paused already: argosy rollout resume chat",
        ),
    ],
)
def test_a_request_without_effect_is_refused_with_the_way_out(make: Callable[[], Request], message: str) -> None:
    with pytest.raises(RequestRefusedError, match=message):
        make()
