"""Requests and reports of builds: the same after writing and reading, and named by what decides them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract.builddocuments import parse_report, parse_request, report_text, request_text
from argosy_agent.contract.builds import (
    AccuracyReport,
    BuildFailure,
    BuildReport,
    BuildRequest,
    BuildState,
    DataSource,
    Gate,
    ModelShape,
    TensorSpec,
    engine_key,
)
from argosy_agent.contract.fields import DocumentError

SMALL = BuildRequest("onnxruntime", "amd64", "argosy-runtime:1", "s3://engines/a", DataSource("s3://models/a.onnx"))
WORDS = st.text(alphabet="abcxyz-.0", min_size=1, max_size=8).filter(lambda word: not word.startswith("."))
URIS = WORDS.map(lambda word: f"s3://bucket/{word}")
DATA = st.builds(DataSource, URIS, st.just("") | WORDS, st.just("") | WORDS)
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
TENSORS = st.builds(TensorSpec, WORDS, st.just("TYPE_FP32"), st.lists(st.integers(-1, 9), max_size=3).map(tuple))
REQUESTS = st.builds(
    BuildRequest,
    builder=WORDS,
    architecture=st.sampled_from(["9.0", "amd64"]),
    compiler=WORDS,
    store=URIS,
    model=DATA,
    filename=st.just("") | WORDS,
    precision=st.just("") | WORDS,
    options=st.dictionaries(WORDS, st.integers() | st.booleans() | st.lists(WORDS, max_size=2), max_size=3),
    inputs=st.lists(TENSORS, max_size=2).map(tuple),
    outputs=st.lists(TENSORS, max_size=2).map(tuple),
    max_batch_size=st.integers(0, 64),
    batch_sizes=st.lists(st.integers(1, 9), max_size=2).map(tuple),
    tensor=st.integers(1, 8),
    calibration=st.just(DataSource()) | DATA,
    gate=st.none() | st.builds(Gate, DATA, WORDS, minimum=st.none() | FINITE, maximum=st.none() | FINITE),
    skip=st.just("") | WORDS,
)
REPORTS = st.builds(
    BuildReport,
    state=st.sampled_from(BuildState),
    phase=st.just("") | WORDS,
    percent=st.integers(0, 100),
    seconds=st.floats(0, 1e6),
    failure=st.none() | st.sampled_from(BuildFailure),
    accuracy=st.none()
    | st.builds(
        AccuracyReport,
        metric=WORDS,
        value=FINITE,
        passed=st.booleans(),
        samples=st.integers(0, 9),
        data_digest=WORDS,
        at=WORDS,
        delta=st.none() | FINITE,
        details=st.dictionaries(WORDS, FINITE, max_size=2),
    ),
    shape=st.none() | st.builds(ModelShape, *[st.integers(0, 99)] * 5),
)


@given(REQUESTS)
def test_a_request_is_the_same_after_writing_and_reading(request_: BuildRequest) -> None:
    assert parse_request(request_text(request_)) == request_


@given(REPORTS)
def test_a_report_is_the_same_after_writing_and_reading(report: BuildReport) -> None:
    assert parse_report(report_text(report)) == report


def test_the_name_does_not_follow_the_order_of_options() -> None:
    one, other = (replace(SMALL, options=options) for options in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one.name == other.name != SMALL.name


def test_what_must_be_shown_names_another_build_of_the_same_engine() -> None:
    gated = replace(SMALL, gate=Gate(DataSource("s3://data/a"), "cosine_similarity", minimum=0.9))
    assert gated.name != SMALL.name
    assert engine_key(gated, "sha256:1", "", "ort 1") == engine_key(SMALL, "sha256:1", "", "ort 1")


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "int8"},
        {"options": {"level": 1}},
        {"architecture": "arm64"},
        {"max_batch_size": 8},
        {"batch_sizes": (4,)},
        {"tensor": 2},
        {"inputs": (TensorSpec("x", "TYPE_FP32", (4,)),)},
    ],
)
def test_what_decides_the_files_decides_the_key(change: dict[str, object]) -> None:
    changed = replace(SMALL, **change)  # type: ignore[arg-type]
    assert engine_key(changed, "m", "", "c") != engine_key(SMALL, "m", "", "c")


def test_model_calibration_and_compiler_decide_the_key() -> None:
    keys = {engine_key(SMALL, *item) for item in (("m", "", "c"), ("n", "", "c"), ("m", "d", "c"), ("m", "", "e"))}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "report.json.state is missing"),
        ('{"state": "Nice"}', "none of Pending"),
        ('{"state": "Ready", "seconds": "1"}', "report.json.seconds must be a finite number"),
        ('{"state": "Ready", "seconds": 1e999}', "finite"),
        ('{"state": "Failed", "failure": "Tired"}', "report.json.failure"),
        ("[", "report.json is not JSON"),
    ],
)
def test_a_report_that_is_none_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        parse_report(text)


def test_gpus_are_those_of_one_copy() -> None:
    assert replace(SMALL, architecture="9.0", tensor=4, pipeline=2).gpus == 8
    assert SMALL.gpus == 0
