"""The texts between operator and activator: they come back as they were, and what is wrong in them is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract.activation import (
    ActivatedMember,
    Activation,
    ActivationPart,
    Endpoint,
    QueuedRequests,
    activation_texts,
    parse_part,
    parse_queued,
    queued_key,
    queued_text,
)
from argosy_agent.contract.fields import DocumentError

WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
PORTS = st.integers(1, 65535)
MEMBERS = st.builds(
    ActivatedMember,
    WORDS,
    WORDS,
    st.floats(0, 1e6),
    st.lists(st.builds(Endpoint, WORDS, PORTS, PORTS), max_size=3).map(tuple),
    st.text(st.characters(exclude_categories=("Cs",))),
)
ACTIVATIONS = st.lists(MEMBERS, max_size=4, unique_by=lambda member: member.model).map(tuple).map(Activation)


@given(ACTIVATIONS)
def test_what_is_written_is_read_as_it_was(activation: Activation) -> None:
    (text,) = activation_texts(activation)
    assert parse_part(text) == ActivationPart(activation.members)


@given(st.builds(QueuedRequests, WORDS, st.dictionaries(WORDS, st.integers(1, 10**9), max_size=4)))
def test_what_a_pod_has_queued_is_read_as_it_was(queued: QueuedRequests) -> None:
    assert parse_queued(queued_text(queued)) == queued
    assert queued_key(queued.pod).startswith(queued.pod)


def test_no_request_waits_where_the_count_is_nought() -> None:
    assert parse_queued(queued_text(QueuedRequests("pod", {"a": 0, "b": 2}))).queued == {"b": 2}


def member(**fields: Any) -> str:
    entry = {"name": "a", "model": "a", "timeoutSeconds": 60, "endpoints": []} | fields
    return json.dumps({"members": [entry]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "members.json is not JSON"),
        ("[]", "members.json must be an object"),
        ("{}", "members.json.members is missing"),
        (member(name=""), "members.json.members[0].name must not be empty"),
        (member(timeoutSeconds=-1), "members.json.members[0].timeoutSeconds must not be negative, and is -1"),
        (member(timeoutSeconds="1m"), "members.json.members[0].timeoutSeconds must be a finite number"),
        (
            member(endpoints=[{"host": "10.0.0.1", "http": 0, "grpc": 8001}]),
            "members.json.members[0].endpoints[0].http must be a port from 1 to 65535, and is 0",
        ),
        (
            member(endpoints=[{"host": "10.0.0.1", "http": 8000, "grpc": 99999}]),
            "members.json.members[0].endpoints[0].grpc must be a port from 1 to 65535, and is 99999",
        ),
        (json.dumps({"members": [json.loads(member())["members"][0]] * 2}), "a stands there more than once"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(DocumentError) as raised:
        parse_part(text)
    assert words in str(raised.value)


def test_a_count_that_cannot_be_is_named() -> None:
    with pytest.raises(DocumentError, match=r"held\.json\.held\.a must be a whole number"):
        parse_queued('{"pod": "p", "held": {"a": -1}}')
