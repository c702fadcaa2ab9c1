"""A server's text to what it exposed: which names are read, and what is left out."""

from collections.abc import Iterable
from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from argosy.autoscaling.metrics.names import Counter, Failure, Gauge, HistogramName
from argosy.autoscaling.metrics.signals import GpuSignals
from argosy.autoscaling.metrics.windows import Exposed, ModelSeries
from argosy.signals.exposition import ExpositionError, samples
from argosy.signals.samples import SAMPLE_NAMES, Buckets, Sample, exposed

HISTOGRAM = """
argosy_request_duration_seconds_bucket{model="m",version="1",le="0.1"} 4
argosy_request_duration_seconds_bucket{model="m",version="1",le="1"} %s
argosy_request_duration_seconds_bucket{model="m",version="1",le="+Inf"} 6
argosy_request_duration_seconds_sum{model="m",version="1"} 2.5
argosy_request_duration_seconds_count{model="m",version="1"} 6
"""


def read(text: str) -> Exposed:
    return exposed(samples(text), 0.0)


def measured(series: ModelSeries) -> dict[Counter | Failure | Gauge, float]:
    """Return the values of all metrics that are there."""
    values = {metric: series.value(metric) for metric in (*Counter, *Failure, *Gauge)}
    return {metric: value for metric, value in values.items() if not isnan(value)}


def test_tritons_counters_are_read_in_seconds() -> None:
    result = read(
        "# HELP nv_inference_queue_duration_us Cumulative\n"
        "# TYPE nv_inference_queue_duration_us counter\n"
        'nv_inference_queue_duration_us{model="m",version="1"} 2500000\n'
        'nv_inference_request_failure{model="m",reason="REJECTED",version="1"} 3\n'
        'nv_inference_request_failure{model="m",reason="OTHER",version="1"} 0\n'
        'nv_something_else{model="m",version="1"} 7\n'
    ).models["m", 1]
    assert measured(result) == {Counter.QUEUE: 2.5, Failure.REJECTED: 3.0, Failure.OTHER: 0.0}


def test_a_histogram_is_read_in_full() -> None:
    histogram = read(HISTOGRAM % 5).models["m", 1].histogram(HistogramName.LATENCY)
    assert histogram is not None
    assert (histogram.bounds, histogram.counts, histogram.total_s) == ((0.1, 1.0, inf), (4, 5, 6), 2.5)


@pytest.mark.parametrize("count", [3, 7, "NaN", -1])
def test_a_histogram_that_cannot_be_so_is_left_out(count: object) -> None:
    assert read(HISTOGRAM % count).models["m", 1].histograms == {}


def test_vllm_is_read_by_its_own_names_and_by_older_ones() -> None:
    old = read('vllm:gpu_cache_usage_perc{model_name="m"} 0.25\nvllm:num_requests_waiting{model_name="m"} 3\n')
    assert measured(old.models["m", 1]) == {Gauge.KV_CACHE: 0.25, Gauge.ENGINE_WAITING: 3.0}
    new = read(
        'vllm:kv_cache_usage_perc{model_name="m",engine="0"} 0.5\nvllm:gpu_cache_usage_perc{model_name="m"} 0.1\n'
    )
    assert measured(new.models["m", 1]) == {Gauge.KV_CACHE: 0.5}


def test_engines_requests_are_added_and_the_fullest_cache_counts() -> None:
    result = read(
        'vllm:num_requests_running{model="m",version="2",engine="0"} 3\n'
        'vllm:num_requests_running{model="m",version="2",engine="1"} 4\n'
        'vllm:kv_cache_usage_perc{model="m",version="2",engine="0"} 0.3\n'
        'vllm:kv_cache_usage_perc{model="m",version="2",engine="1"} 0.9\n'
    )
    assert measured(result.models["m", 2]) == {Gauge.ENGINE_RUNNING: 7.0, Gauge.KV_CACHE: 0.9}


def test_tensorrt_llm_is_read_by_tritons_names() -> None:
    result = read(
        'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 2\n'
        'nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 5\n'
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m",version="1"} 0.75\n'
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m",version="1"} 900\n'
    )
    assert measured(result.models["m", 1]) == {
        Gauge.ENGINE_WAITING: 2.0,
        Gauge.ENGINE_RUNNING: 5.0,
        Gauge.KV_CACHE: 0.75,
    }


@pytest.mark.parametrize(
    ("used", "utilization", "registered"), [(10, 0.5, (0.5, 10)), (200, 1.5, (None, None)), (-1, 0, (0, None))]
)
def test_gpus_are_read_where_it_can_be_so(
    used: int, utilization: float, registered: tuple[float | None, int | None]
) -> None:
    result = read(
        f'nv_gpu_utilization{{gpu_uuid="GPU-1"}} {utilization}\n'
        f'nv_gpu_memory_used_bytes{{gpu_uuid="GPU-1"}} {used}\n'
        'nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 100\n'
    )
    assert result.gpus == (GpuSignals(*registered, 100),)


@pytest.mark.parametrize("bound", ["x", "-5", "nan"])
def test_a_histogram_with_a_bound_that_is_no_duration_is_left_out(bound: str) -> None:
    assert read((HISTOGRAM % 5).replace('le="0.1"', f'le="{bound}"')).models["m", 1].histograms == {}


@pytest.mark.parametrize("version", ["x", "-1", "", "9" * 5000])
def test_a_version_that_is_none_is_passed_over(version: str) -> None:
    assert read(f'nv_inference_request_success{{model="m",version="{version}"}} 1').models == {}


@pytest.mark.parametrize(
    "line", ['nv_inference_count{model="m" 1', "nv_inference_count{} x", 'nv_inference_count{model="m"}']
)
def test_a_text_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ExpositionError):
        read(line)


Line = tuple[str, dict[str, str], str]


def one_by_one(result: Iterable[Sample | Buckets]) -> list[Line]:
    """Return names, labels and values, also of buckets that were read together."""
    reported: list[Line] = []
    for item in result:
        if isinstance(item, Buckets):
            buckets = zip(item.bounds, item.counts, strict=True)
            reported += [(item.name, {**item.labels, "le": bound}, repr(count)) for bound, count in buckets]
        else:
            reported.append((item.name, dict(item.labels), repr(float(item.value))))
    return reported


def theirs(text: str) -> list[Line]:
    """Return the samples as Prometheus' own parser reads them."""
    matches = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return [(item.name, item.labels, repr(float(item.value))) for item in matches]


label_texts = st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=8)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(SAMPLE_NAMES)),
            st.dictionaries(st.sampled_from(["model", "version", "le", "quantile"]), label_texts, max_size=3),
            st.one_of(st.floats(), st.integers(0, 2**60)),
            st.sampled_from(["", " 1700000000000"]),
        ),
        max_size=5,
    )
)
def test_texts_are_read_as_prometheus_clients_parser_reads_them(
    series: list[tuple[str, dict[str, str], float, str]],
) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"')

    lines = []
    for name, labels, value, time in series:
        inner = ",".join(f'{key}="{escaped(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{inner}}} {value}{time}\n" if labels else f"{name} {value}{time}\n")
    text = "".join(lines)
    assert one_by_one(samples(text)) == theirs(text)


bucket_lines = st.tuples(
    st.sampled_from(["argosy_request_duration_seconds", "vllm:time_to_first_token_seconds"]),
    st.dictionaries(
        st.sampled_from(["model", "version"]), st.sampled_from(["m", "1", ',le="', '"} 5', "{", "\\"]), min_size=1
    ),
    st.lists(
        st.tuples(
            st.sampled_from(["0.1", "1", "1.0", "1e1", "+Inf", "x", 'y"} 4']),
            st.sampled_from(["0", "5", "7.5", "NaN", "3 1700000000000"]),
        ),
        max_size=6,
    ),
    st.sampled_from(["", "# a comment", 'argosy_batch_rows_bucket{model="m",version="1",le="1"} 9', "   "]),
    st.sampled_from(["last", "first", "spaced"]),
)
"""Histograms as servers tell them, and as they should not: no bound above all, two alike, none that is a number, lines
between them, times behind values, the bound among other labels, labels' values that look like the end of a line.
"""


@given(st.lists(bucket_lines, max_size=4))
def test_buckets_that_are_read_together_are_those_that_are_read_one_by_one(
    histograms: list[tuple[str, dict[str, str], list[tuple[str, str]], str, str]],
) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"')

    lines = []
    for name, labels, buckets, between, where in histograms:
        for bound, count in buckets:
            le = f'le="{escaped(bound)}"'
            inner = [f'{key}="{escaped(value)}"' for key, value in labels.items()]
            inner = [le, *inner] if where == "first" else [*inner, le]
            lines.append(f"{name}_bucket{{{(', ' if where == 'spaced' else ',').join(inner)}}} {count}\n")
        if between:
            lines.insert(max(0, len(lines) - 1), between + "\n")
        others = ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items())
        lines.append(f"{name}_sum{{{others}}} 4\n")
    text = "".join(lines)
    read_here = [their for their in theirs(text) if their[0] in SAMPLE_NAMES]
    assert one_by_one(samples(text)) == read_here
    singly = exposed([Sample(name, labels, float(value)) for name, labels, value in read_here], 0.0)
    assert repr(read(text)) == repr(singly)


@pytest.mark.parametrize("between", ["5", "5\n6", "", "# 5", "0.5 6"])
def test_what_stands_between_buckets_and_is_none_is_passed_over(between: str) -> None:
    first, *others = (HISTOGRAM % 5).strip().splitlines()
    assert read("\n".join([first, between, *others])) == read(HISTOGRAM % 5)


@pytest.mark.parametrize("line", [" 5", '" 5', '"}', '"} x', '"} 4"} 5', '"}5 5 5'])
def test_a_bucket_that_is_none_is_refused(line: str) -> None:
    first, _, *others = (HISTOGRAM % 5).strip().splitlines()
    wrong = first.partition('le="')[0] + 'le="1' + line
    with pytest.raises(ExpositionError, match="line 2 is"):
        read("\n".join([first, wrong, *others]))


def test_what_our_server_tells_of_a_histogram_is_read_at_once() -> None:
    result = list(samples(HISTOGRAM % 5))
    assert [type(item) for item in result] == [Buckets, Sample]


def test_a_page_that_is_something_else_has_nothing() -> None:
    assert read("<html><body>welcome</body></html>") == Exposed(0.0)
