"""The measured crossovers of a model's variants become a part of its manifest."""

import pytest
from tests.operator.bench.measuring import Speeds, results_of

from argosy.api.model.variants import Variant
from argosy.bench.results import Endpoint
from argosy.bench.variants.crossovers import crossover_patch, measured_variants

LOW = {1: 10.0, 8: 60.0, 64: 70.0}
MIDDLE = {1: 9.0, 8: 66.0, 64: 90.0}
HIGH = {1: 5.0, 8: 50.0, 64: 300.0}


def patch(speeds: Speeds, **method: object) -> dict:
    measured = results_of(speeds, **method)
    return crossover_patch(*measured_variants(measured.endpoints), measured)


def test_two_variants_in_either_order() -> None:
    for speeds in ({"a": LOW, "b": HIGH}, {"b": HIGH, "a": LOW}):
        written = patch(speeds)
        assert written["metadata"] == {"name": "chat"}
        (entry,) = written["spec"]["variants"]
        assert entry["name"] == "a"
        assert entry["maxConcurrency"] == int(entry["measurement"]["concurrency"])
        assert 8 < entry["measurement"]["low"] <= entry["measurement"]["concurrency"] <= entry["measurement"]["high"]
        Variant.model_validate(entry)


def test_it_says_when_and_on_what_and_with_which_load() -> None:
    (entry,) = patch({"a": LOW, "b": HIGH})["spec"]["variants"]
    measurement = entry["measurement"]
    numbers = (measurement["promptTokens"], measurement["outputTokens"])
    assert (measurement["time"], measurement["hardware"], numbers) == ("2026-05-04T12:00:00Z", "1x H100", (10, 5))


def test_a_crossover_for_every_pair_of_neighbours_among_three_variants() -> None:
    entries = patch({"a": LOW, "b": MIDDLE, "c": HIGH})["spec"]["variants"]
    assert [entry["name"] for entry in entries] == ["a", "b"]
    assert 1 <= entries[0]["maxConcurrency"] < 8 <= entries[1]["maxConcurrency"] < 64


@pytest.mark.parametrize(
    ("speeds", "reason"),
    [
        ({"a": LOW, "b": {level: 2 * rate for level, rate in LOW.items()}}, "have no crossover: b at every level"),
        ({"b": MIDDLE, "a": LOW, "c": HIGH}, "name a before b"),
        ({"a": LOW, "b": {1: 6.0, 8: 40.0, 64: 90.0}, "c": HIGH}, "b is best nowhere"),
    ],
)
def test_without_a_crossover_nothing_is_written(speeds: Speeds, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        patch(speeds)


@pytest.mark.parametrize("missing", ["time", "hardware"])
def test_a_document_without_its_origin_is_no_measurement(missing: str) -> None:
    with pytest.raises(ValueError, match=f"has no {missing}: measure again"):
        patch({"a": LOW, "b": HIGH}, **{missing: None})


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        (("chat--a", "llama"), "measured with model 'llama', which is no variant"),
        (("chat--a", ""), "--model 1=MODEL--VARIANT"),
        (("chat--a", "other--b"), "of one model"),
        (("chat--a",), "of two or more variants"),
    ],
)
def test_endpoints_that_are_no_variants(models: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        measured_variants([Endpoint(str(index), "http://x", model) for index, model in enumerate(models)])
