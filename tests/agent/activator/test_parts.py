"""An activator of thousands of members: what the operator writes comes in parts, and counts once all are there."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.activator.standing import Standing, standing
from tests.agent.contract.test_activation import ACTIVATIONS

from argosy_agent.activator.members import Parts
from argosy_agent.activator.pending import NotForwardedError
from argosy_agent.contract.activation import (
    MAX_REPORTED,
    PART_BYTES,
    ActivatedMember,
    Activation,
    Endpoint,
    QueuedRequests,
    activation_texts,
    parse_part,
    parse_queued,
    queued_text,
)

FULL = 1 << 20
ENDPOINT = Endpoint("10.0.0.1", 8000, 8001)


def many(count: int, **more: object) -> Activation:
    """Return members with a reason as long as it gets."""
    settings = {"timeout_s": 600.0, "reason": "x" * 300, **more}
    return Activation(tuple(ActivatedMember(f"the-model-{n}", f"model-{n}", **settings) for n in range(count)))  # type: ignore[arg-type]


def by_name(activation: Activation) -> list[ActivatedMember]:
    return sorted(activation.members, key=lambda member: member.model)


@given(ACTIVATIONS, st.integers(200, 2000))
def test_parts_together_are_what_was_written(activation: Activation, most: int) -> None:
    texts, parts = activation_texts(activation, most), Parts()
    results = [parts.take(number, parse_part(text)) for number, text in enumerate(texts)]
    assert results[:-1] == [None] * (len(texts) - 1)
    assert results[-1] is not None
    assert by_name(results[-1]) == by_name(activation)


def test_ten_thousand_members_fit_and_a_change_of_one_writes_one_part() -> None:
    texts = activation_texts(many(10_000))
    assert len(texts) == 8
    assert all(len(text.encode()) <= PART_BYTES < FULL for text in texts)
    changed = list(many(10_000).members)
    changed[5000] = ActivatedMember("the-model-5000", "model-5000", 600.0, (ENDPOINT,))
    after = activation_texts(Activation(tuple(changed)))
    assert sum(one != other for one, other in zip(texts, after, strict=True)) == 1


def test_a_lone_member_that_is_too_long_ends_no_loop() -> None:
    assert len(activation_texts(many(1), 10)) == 1
    assert len(activation_texts(many(3), 10)) == 4


def test_what_was_read_stands_until_all_parts_of_another_number_are_there() -> None:
    parts, one, two = Parts(), activation_texts(many(4)), activation_texts(many(5), 2000)
    assert (len(one), len(two)) == (1, 2)
    assert parts.take(0, parse_part(one[0])) == many(4)
    assert parts.take(0, parse_part(two[0])) is None
    grown = parts.take(1, parse_part(two[1]))
    assert grown is not None
    assert by_name(grown) == by_name(many(5))
    assert parts.take(0, parse_part(one[0])) == many(4), "the other part may be gone, and says nothing any more"
    assert parts.take(1, parse_part(two[1])) == many(4)


def test_of_more_names_than_fit_those_are_reported_for_which_the_most_wait() -> None:
    queued = {f"{'m' * 240}-{number}": number + 1 for number in range(5 * MAX_REPORTED)}
    text = queued_text(QueuedRequests("uid", queued))
    assert 3 * len(text.encode()) < FULL
    reported = parse_queued(text).queued
    assert len(reported) == MAX_REPORTED
    assert min(reported.values()) == 4 * MAX_REPORTED + 1
    assert '"leftOut": 4000' in text


def resource_of(at: Standing, model: str) -> str:
    """Return the resource of a model, as the activator knows it."""
    return at.activator._pending.member(model).name


async def test_an_activator_holds_requests_for_ten_thousand_members() -> None:
    async with standing() as at:
        *most, last = activation_texts(many(10_000))
        at.tells(most)
        await at.channel.taken(range(len(most)))
        with pytest.raises(NotForwardedError, match="nothing is held"):
            resource_of(at, "model-0")
        at.channel.part(len(most)).put_nowait(last)
        await at.channel.taken([len(most)])
        for number in (0, 1, 4999, 9999):
            assert resource_of(at, f"model-{number}") == f"the-model-{number}"
        at.tells(activation_texts(many(3)))
        await at.channel.taken([0])
        assert resource_of(at, "model-2") == "the-model-2"
        with pytest.raises(NotForwardedError, match="nothing is held"):
            resource_of(at, "model-9999")


async def break_off(number: int) -> None:
    """Run an activator of two parts, one of which can no longer be followed."""
    async with standing() as at:
        texts = activation_texts(many(5), 2000)
        at.tells(texts)
        await at.channel.taken(range(len(texts)))
        at.channel.part(number).put_nowait(ZeroDivisionError("a fault"))
        await asyncio.wait({at.running}, timeout=30)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_part_that_cannot_be_followed_ends_the_activator(number: int) -> None:
    with pytest.raises(ZeroDivisionError, match="a fault"):
        await break_off(number)
