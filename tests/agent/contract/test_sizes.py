"""The size of a server's documents: bounds that hold for any report, and a state that is cut where it must be."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.contract.test_documents import MODELS
from tests.properties import examples

from argosy_agent.contract import FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import AgentState, parse_state, repository_text, state_text
from argosy_agent.contract.fitting import LONGEST_REASON, fitting_text, shortened
from argosy_agent.contract.sizes import (
    DOCUMENT_BYTES,
    PLACED_BYTES,
    REASON_BYTES,
    config_bytes,
    entry_bytes,
    stepped,
    text_bytes,
    texts_bytes,
)

KEY = "0123456789abcdef"
DIGEST = "listing:" + "a" * 64
FULL = 1_048_576
"""What a ConfigMap holds, in bytes."""


def bound(model: RenderedModel) -> int:
    """Return the most bytes that the model takes, as it is."""
    config = text_bytes(model.config_text) + texts_bytes(model.texts)
    return entry_bytes(model.name, model.resource, config, model.versions, model.steps, len(model.gpus))


def reports(model: RenderedModel, reason: str, digest: str = "") -> tuple[LoadedModel, ...]:
    """Return the longest reports of its versions, with this reason."""
    failure, attempts = (FailureKind.DEVICE, 10**9) if reason else (None, 0)
    state = LoadState.UNAVAILABLE if reason else LoadState.READY
    return tuple(
        LoadedModel(model.declared_name, version, state, reason, failure, bool(reason), digest, attempts)
        for version in model.versions
    )


def size(text: str) -> int:
    return len(text.encode())


def with_keys(source: VersionSource) -> VersionSource:
    """Return a source whose own configuration has keys of their usual length."""
    return replace(source, own=source.own and replace(source.own, config_key=KEY, reload_key=KEY))


SMALL = MODELS.filter(lambda model: all(s.memory < 10**15 for s in model.versions.values())).map(
    lambda model: replace(
        model,
        reload_key=KEY,
        config_key=KEY,
        instances=model.instances % 1000,
        gpus=(100, 101),
        versions={version: with_keys(source) for version, source in model.versions.items()},
    )
)
EMPTY = size(state_text(AgentState()))


@given(st.lists(SMALL, max_size=3, unique_by=lambda model: model.name), st.booleans())
@examples(200)
def test_no_document_has_more_than_its_models_take_at_most(models: list[RenderedModel], ready: bool) -> None:
    reported = ("", DIGEST) if ready else ("r" * (REASON_BYTES - 2), "")
    entries = tuple(item for model in models for item in reports(model, *reported))
    most = sum(map(bound, models))
    assert (
        size(repository_text(RenderedRepository("", tuple(models)))) - size(repository_text(RenderedRepository("")))
        <= most
    )
    assert size(state_text(AgentState(models=entries, applied=RenderedRepository("", tuple(models))))) - EMPTY <= most


@given(st.text())
def test_the_bytes_of_a_config_are_those_of_its_json(text: str) -> None:
    printable = "".join(item for item in text if item.isprintable() or item == "\n")
    assert config_bytes(printable) == text_bytes(printable) == size(json.dumps(printable, ensure_ascii=False))


def test_further_versions_count_as_the_largest() -> None:
    one = {1: VersionSource("s3://bucket/m", "sha256:" + "0" * 64)}
    alone, three = (entry_bytes("m", "", 100, one, more_versions=more) for more in (0, 2))
    real = dict.fromkeys((1, 10**17, 10**18), one[1])
    assert entry_bytes("m", "", 100, real) <= three
    assert alone < three


@given(st.integers(1, 10**9))
def test_few_sizes_differ_and_none_counts_for_less(size: int) -> None:
    assert size <= stepped(size) <= size * 9 / 8 + 1
    assert len({stepped(number) for number in range(1024, 2049)}) == 9


@given(st.text(), st.integers(8, 200))
def test_a_text_is_cut_to_the_bytes_that_it_may_have(text: str, most: int) -> None:
    result = shortened(text, most)
    assert text_bytes(result) <= most
    assert result == text or (result.endswith("…") and text_bytes(text) > most and text.startswith(result[:-1]))


def fleet(count: int) -> list[RenderedModel]:
    config = 'name: "m"\nbackend: "onnxruntime"\n' * 8
    return [
        RenderedModel(f"model-{n:04}", config, {1: VersionSource(f"s3://bucket/{n}")}, {}, (), KEY, config_key=KEY)
        for n in range(count)
    ]


def fitting(models: list[RenderedModel]) -> list[RenderedModel]:
    """Return as many of them as a plan puts on one server."""
    item = bound(models[0])
    return models[: PLACED_BYTES // item]


@pytest.mark.parametrize("reason", ["", "x" * 5000, 'é"\n' * 2000], ids=["ready", "plain", "escaped"])
def test_what_is_placed_on_a_server_fits_whatever_is_reported_of_it(reason: str) -> None:
    models = fitting(fleet(1500))
    assert len(models) > 700
    entries = tuple(item for model in models for item in reports(model, reason, DIGEST))
    problem = "y" * LONGEST_REASON
    state = AgentState(
        "u" * 36, True, True, entries, RenderedRepository("p-0", tuple(models)), "f" * 16, problem, 10**10
    )
    text = fitting_text(state)
    assert size(text) <= DOCUMENT_BYTES < FULL
    reported = parse_state(text)
    assert reported.left_out == 0
    assert reported.applied == state.applied
    assert [(item.model, item.state, item.failure) for item in reported.models] == [
        (entry.model, entry.state, entry.failure) for entry in entries
    ]
    if reason:
        assert all(
            model.reason.endswith("…") and text_bytes(model.reason) <= LONGEST_REASON for model in reported.models
        )
    else:
        assert reported == state


def test_reasons_are_as_long_as_there_is_space_for() -> None:
    models = fleet(100)
    entries = tuple(item for model in models for item in reports(model, "x" * LONGEST_REASON))
    text = fitting_text(AgentState(models=entries, applied=RenderedRepository("", tuple(models))))
    assert {len(model.reason) for model in parse_state(text).models} == {LONGEST_REASON}


@pytest.mark.parametrize("reason", ["", "x" * 500])
def test_models_beyond_the_size_are_left_out_and_numbered(reason: str) -> None:
    models = fleet(5000)
    entries = tuple(item for model in models for item in reports(model, reason, DIGEST))
    text = fitting_text(AgentState(models=entries, applied=RenderedRepository("p-0", tuple(models))))
    assert DOCUMENT_BYTES * 0.97 < size(text) <= DOCUMENT_BYTES
    reported = parse_state(text)
    names = {model.name for model in reported.applied.models}
    assert {item.model for item in reported.models} == names
    assert reported.left_out == 5000 - len(names) > 0
