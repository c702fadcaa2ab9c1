"""The texts between operator and agent: they come back as they were, and what is wrong in them is named."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract import (
    FailureKind,
    LoadedModel,
    LoadState,
    RenderedModel,
    RenderedRepository,
    VersionConfig,
    VersionSource,
)
from argosy_agent.contract.documents import (
    AgentState,
    fingerprint,
    parse_repository,
    parse_state,
    repository_text,
    state_text,
)
from argosy_agent.contract.fields import DocumentError

NUMBERS = st.integers(0, 2**63)
NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=60).filter(
    lambda name: not name.startswith(".")
)
URIS = st.text().filter(lambda text: not set(text) & set("[]\0") and text.isascii())
OWN = st.builds(VersionConfig, st.text(), st.text(), st.text(), st.dictionaries(st.text(), NUMBERS, max_size=2))
SOURCES = st.builds(VersionSource, URIS, st.text(), st.just("") | NAMES, NUMBERS, st.booleans(), own=st.none() | OWN)
MODELS = st.builds(
    RenderedModel,
    NAMES,
    st.text(),
    st.dictionaries(NUMBERS, SOURCES, max_size=3),
    st.dictionaries(st.text(), NUMBERS, max_size=3),
    resource=st.text(),
    config_key=st.text(),
    reload_key=st.text(),
    instances=NUMBERS,
    texts=st.dictionaries(NAMES, st.text(st.characters(exclude_categories=("Cs",))), max_size=2),
)
REPOSITORIES = st.builds(
    RenderedRepository,
    st.text(),
    st.lists(MODELS, max_size=4, unique_by=lambda model: model.name).map(tuple),
)
LOADED = st.builds(
    LoadedModel,
    st.text(),
    NUMBERS,
    st.sampled_from(LoadState),
    st.text(),
    st.none() | st.sampled_from(FailureKind),
    attempts=NUMBERS,
)
STATES = st.builds(
    AgentState,
    st.text(),
    st.booleans(),
    st.booleans(),
    st.lists(LOADED, max_size=4).map(tuple),
    REPOSITORIES,
    st.text(),
    st.text(),
)
REPOSITORY = RenderedRepository(
    "pool-0",
    (
        RenderedModel("m", 'name: "m"\n', {1: VersionSource("s3://bucket/m", "sha256:00", "model.onnx")}),
        RenderedModel("pipe", 'name: "pipe"\n', {3: VersionSource()}, {"m": 1}),
    ),
)


@given(REPOSITORIES)
def test_a_repository_comes_back_as_it_was(repository: RenderedRepository) -> None:
    text = repository_text(repository)
    assert parse_repository(text) == repository
    assert repository_text(parse_repository(text)) == text


@given(STATES)
def test_a_state_comes_back_as_it_was(state: AgentState) -> None:
    assert parse_state(state_text(state)) == state


@given(REPOSITORIES)
def test_equal_repositories_have_the_same_text(repository: RenderedRepository) -> None:
    turned = RenderedRepository(
        repository.server,
        tuple(
            replace(
                model,
                versions=dict(reversed(model.versions.items())),
                steps=dict(reversed(model.steps.items())),
            )
            for model in repository.models
        ),
    )
    assert repository_text(turned) == repository_text(repository)
    assert fingerprint(repository_text(turned)) == fingerprint(repository_text(repository))


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()) | st.just({}))
def test_any_json_is_a_document_or_an_error(value: Any) -> None:
    for parse in (parse_repository, parse_state):
        with pytest.raises(DocumentError):
            parse(json.dumps(value))


@given(st.text())
def test_any_text_is_an_error_that_names_the_document(text: str) -> None:
    with pytest.raises(DocumentError, match=r"repository\.json"):
        parse_repository(text)


MISSING = object()


def changed(path: str, to: Any = MISSING) -> str:
    """Return the repository's text with one field changed, or without it."""
    document = json.loads(repository_text(REPOSITORY))
    value = document
    *parents, last = [int(key) if index == 1 else key for index, key in enumerate(path.split("/"))]
    for key in parents:
        value = value[key]
    if to is MISSING:
        del value[last]
    else:
        value[last] = to
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "repository.json is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        (changed("server"), "repository.json.server is missing"),
        (changed("models/0/config"), "repository.json.models[0].config is missing"),
        (changed("models", {}), "repository.json.models must be a list"),
        (changed("models/0", "m"), "repository.json.models[0] must be an object"),
        (changed("models/1/name", "m"), "repository.json.models: m stands there more than once"),
        (changed("models/0/name", "../m"), "repository.json.models[0].name: '../m' cannot be a file's name"),
        (changed("models/0/name", ".."), "repository.json.models[0].name: '..' cannot be a file's name"),
        (changed("models/0/name", "x" * 256), "cannot be a file's name"),
        (changed("models/0/versions/1/filename", "a/../b"), "versions.1.filename: '..' cannot be a file's name"),
        (changed("models/0/versions/1/uri", 5), "versions.1.uri must be a string, not 5"),
        (changed("models/0/versions/1/uri", "https://[x/y"), "repository.json.models[0].versions.1.uri is no URI"),
        (changed("models/0/versions/1/uri", "file:///a\0b"), "versions.1.uri is no URI: it holds a null character"),
        (changed("models/0/name", "\ud800"), "repository.json.models[0].name is no Unicode text"),
        (changed("models/1/steps/\ud800", 1), "repository.json.models[1].steps is no Unicode text"),
        (changed("models/0/versions/-1", {}), "versions.-1 must be a whole number that is not negative"),
        (changed("models/0/versions/01", {}), "versions.01 must be a whole number"),
        (changed("models/0/versions/1.5", {}), "versions.1.5 must be a whole number"),
        (changed("models/1/steps/m", True), "repository.json.models[1].steps.m must be a whole number, not True"),
        (changed("models/1/steps/m", -1), "steps.m must be a whole number that is not negative"),
    ],
)
def test_what_is_wrong_in_a_repository_is_named(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_repository(text)
    assert message in str(caught.value)


def test_what_is_wrong_in_a_state_is_named() -> None:
    document = json.loads(state_text(AgentState(models=(LoadedModel("m", 1, LoadState.READY),))))
    document["models"][0]["state"] = "FINE"
    with pytest.raises(DocumentError, match=r"state.json.models\[0\].state: 'FINE' is none of LOADING, READY"):
        parse_state(json.dumps(document))


def test_fields_of_a_later_release_are_passed_over() -> None:
    assert parse_repository(changed("models/0/priority", 3)) == REPOSITORY


def test_an_older_release_has_one_key_for_all_of_the_configuration() -> None:
    text = '{"server": "s", "models": [{"name": "m", "config": "", "versions": {}, "gpus": [], "reloadKey": "k"}]}'
    (model,) = parse_repository(text).models
    assert (model.config_key, model.reload_key, model.instances) == ("k", "", 0)


def test_the_digest_of_what_serves_passes_in_the_state() -> None:
    reported = LoadedModel("m", 1, LoadState.READY, digest="listing:00")
    assert parse_state(state_text(AgentState(models=(reported,)))).models == (reported,)
