"""Metrics of models' own: shown while one owner is there, and counts never go back."""

import pytest

from argosy_runtime.backends.contract import MetricFamilySpec
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.telemetry import custom
from argosy_runtime.telemetry.custom import CustomMetrics
from argosy_runtime.telemetry.exposition import exposition

COUNTER = MetricFamilySpec("requests", "Requests.", "counter")
GAUGE = MetricFamilySpec("depth", "Depth.", "gauge")
SIZES = MetricFamilySpec("sizes", "Sizes.", "histogram", (1.0, 2.0))
A, B = {"a": "1"}, {"a": "2"}


def text(metrics: CustomMetrics) -> str:
    """Return the text that a scraper reads of the samples."""
    lines = exposition(metrics.families()).decode().splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def test_a_metric_is_there_while_one_of_its_owners_is():
    metrics = CustomMetrics()
    for owner in (1, 2):
        metrics.act(owner, COUNTER, A, "create", 0)
        metrics.act(owner, COUNTER, A, "increment", 2)
    metrics.forget(1)
    assert metrics.act(2, COUNTER, A, "increment", 1) == 5
    assert text(metrics) == 'requests{a="1"} 5'
    metrics.forget(2)
    assert text(metrics) == ""


def test_every_time_that_an_owner_has_a_metric_counts():
    metrics = CustomMetrics()
    metrics.act(1, COUNTER, A, "create", 0)
    metrics.act(1, COUNTER, A, "create", 0)
    metrics.act(1, COUNTER, A, "remove", 0)
    assert metrics.act(1, COUNTER, A, "increment", 1) == 1
    metrics.act(1, COUNTER, A, "remove", 0)
    metrics.act(1, COUNTER, A, "remove", 0)
    with pytest.raises(ServingError, match="has no metric with labels"):
        metrics.act(1, COUNTER, A, "increment", 1)


def test_counts_go_on_where_they_were_and_gauges_begin_again():
    metrics = CustomMetrics()
    for owner in range(3):
        for family, action in ((COUNTER, "increment"), (GAUGE, "increment"), (SIZES, "observe")):
            metrics.act(owner, family, A, "create", 0)
            metrics.act(owner, family, A, action, 2)
        shown = text(metrics)
        metrics.forget(owner)
    assert 'requests{a="1"} 6' in shown
    assert 'depth{a="1"} 2' in shown
    assert 'sizes_bucket{a="1",le="2"} 3' in shown
    assert 'sizes_sum{a="1"} 6' in shown


def test_the_removal_of_one_owner_is_nothing_to_another():
    metrics = CustomMetrics()
    metrics.act(1, GAUGE, A, "create", 0)
    metrics.act(2, GAUGE, A, "remove", 0)
    metrics.forget(3)
    assert metrics.act(1, GAUGE, A, "set", 4) == 4
    with pytest.raises(ServingError, match="has no metric with labels"):
        metrics.act(2, GAUGE, A, "set", 5)


def test_a_family_without_owners_may_become_one_of_another_kind():
    metrics = CustomMetrics()
    metrics.act(1, COUNTER, A, "create", 0)
    other = MetricFamilySpec("requests", "Requests.", "gauge")
    with pytest.raises(ServingError, match="Family name already exists with different type"):
        metrics.act(2, other, A, "create", 0)
    metrics.forget(1)
    metrics.act(2, other, A, "create", 0)
    assert metrics.act(2, other, A, "set", -1) == -1


def test_histograms_of_one_family_may_have_buckets_of_their_own():
    metrics = CustomMetrics()
    finer = MetricFamilySpec("sizes", "Sizes.", "histogram", (0.5, 1.0, 1.5, 2.0))
    metrics.act(1, SIZES, A, "create", 0)
    metrics.act(1, finer, B, "create", 0)
    metrics.act(1, finer, B, "observe", 9)
    assert 'sizes_bucket{a="2",le="+Inf"} 1' in text(metrics)
    assert 'sizes_bucket{a="1",le="+Inf"} 0' in text(metrics)


def test_counts_without_an_owner_are_bounded(monkeypatch):
    monkeypatch.setattr(custom, "UNOWNED", 2)
    metrics = CustomMetrics()
    for number in range(4):
        metrics.act(1, COUNTER, {"a": str(number)}, "create", 0)
        metrics.act(1, COUNTER, {"a": str(number)}, "increment", 7)
        metrics.act(1, COUNTER, {"a": str(number)}, "remove", 0)
    counts = [metrics.act(1, COUNTER, {"a": str(number)}, "create", 0) for number in range(4)]
    assert counts == [0, 0, 7, 7]


def test_the_servers_own_families_are_not_a_models():
    metrics = CustomMetrics(["nv_inference_count"])
    with pytest.raises(ServingError, match="is one of the server's own"):
        metrics.act(1, MetricFamilySpec("nv_inference_count", "", "counter"), {}, "create", 0)


def test_a_family_is_of_its_kind_while_a_model_has_it():
    metrics = CustomMetrics()
    gauge = MetricFamilySpec("requests", "Requests.", "gauge")
    metrics.act(1, COUNTER, {}, "declare", 0)
    metrics.act(2, COUNTER, {}, "declare", 0)
    metrics.act(1, COUNTER, {}, "drop", 0)
    with pytest.raises(ServingError, match="Family name already exists with different type"):
        metrics.act(1, gauge, {}, "declare", 0)
    assert metrics.families() == []
    metrics.forget(2)
    metrics.act(1, gauge, {}, "declare", 0)
    metrics.act(1, gauge, A, "create", 0)
    assert text(metrics) == 'requests{a="1"} 0'
    metrics.forget(1)
    assert not metrics._families


@pytest.mark.parametrize(
    ("family", "action", "message"),
    [
        (COUNTER, "set", "TRITONSERVER_METRIC_KIND_COUNTER does not support Set"),
        (COUNTER, "observe", "TRITONSERVER_METRIC_KIND_COUNTER does not support Observe"),
        (GAUGE, "observe", "TRITONSERVER_METRIC_KIND_GAUGE does not support Observe"),
        (SIZES, "increment", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Increment"),
        (SIZES, "set", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Set"),
        (SIZES, "value", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value"),
    ],
)
def test_what_a_kind_does_not_do_is_refused_in_triton_s_words(family, action, message):
    metrics = CustomMetrics()
    metrics.act(1, family, A, "create", 0)
    with pytest.raises(ServingError) as caught:
        metrics.act(1, family, A, action, 1.0)
    assert (caught.value.kind, caught.value.message) == (ErrorKind.UNSUPPORTED, message)


@pytest.mark.parametrize("labels", [{"a-b": "1"}, {"": "1"}, {"__name__": "x"}, {'a="1",b': "1"}, {"a\n": "1"}])
def test_labels_that_would_break_the_text_are_refused(labels):
    metrics = CustomMetrics()
    with pytest.raises(ServingError, match="cannot be a label of metric family"):
        metrics.act(1, COUNTER, labels, "create", 0)
    assert text(metrics) == ""


@pytest.mark.parametrize("name", ["", "a b", "1a", "a\n", "a{b", "ä"])
def test_names_that_would_break_the_text_are_refused(name):
    with pytest.raises(ValueError, match="cannot be a metric family's name"):
        MetricFamilySpec(name, "", "counter")


@pytest.mark.parametrize("buckets", [(2.0, 1.0), (1.0, 1.0), (float("nan"),)])
def test_buckets_must_grow(buckets):
    with pytest.raises(ValueError, match="Bucket Boundaries must be strictly sorted"):
        MetricFamilySpec("sizes", "", "histogram", buckets)
