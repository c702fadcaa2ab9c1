"""The text of metrics is what Prometheus' own parser reads back: labels of any letters, histograms, numbers."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from argosy_runtime.telemetry.exposition import Family, Labels, bound_texts, exposition

labels = st.dictionaries(st.from_regex(r"\A[a-d]{1,3}\Z"), st.text(st.characters(exclude_categories=["Cs", "Cc"])))
values = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)


def read_back(family: Family) -> list[tuple[str, dict[str, str], float]]:
    """Return the samples of the one family."""
    (read,) = text_string_to_metric_families(exposition([family]).decode())
    assert (read.documentation, read.type) == (family.help, family.kind)
    return [(sample.name, sample.labels, sample.value) for sample in read.samples]


@given(labels, values)
def test_a_value_keeps_its_labels_and_its_digits(message, value):
    family = Family("m", "What it says", "gauge")
    family.add(message, value)
    family.add(Labels(message), value)
    assert read_back(family) == [("m", message, float(value))] * 2


def test_letters_that_have_to_be_escaped():
    reported = {"path": 'C:\\new "x"\nline'}
    family = Family("m", "Two\nlines of \\ help", "gauge")
    family.add(reported, 1)
    assert read_back(family) == [("m", reported, 1.0)]


@given(labels, st.lists(st.integers(0, 5), min_size=4, max_size=4), st.integers(0, 10**12))
def test_a_histogram_has_every_bucket_with_those_below_it(message, counts, total):
    family = Family("h", "Durations", "histogram")
    family.add_buckets(message, bound_texts((0.1, 2, 2.5)), counts, total)
    buckets = zip(("0.1", "2", "2.5", "+Inf"), accumulate(counts), strict=True)
    assert read_back(family) == [
        *[("h_bucket", {**message, "le": bound}, float(count)) for bound, count in buckets],
        ("h_sum", message, float(total)),
        ("h_count", message, float(sum(counts))),
    ]
