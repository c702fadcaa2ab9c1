"""A model's counts as Triton's families and as our own: units, buckets, reasons, omissions."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from argosy_runtime.backends.contract import EngineState, ExecutionTimes
from argosy_runtime.backends.engines.meter import EngineMeter
from argosy_runtime.errors import FailureReason
from argosy_runtime.telemetry.argosy_families import argosy_families
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.triton_families import triton_families

MS = 1_000_000
MODEL = InService(running=3, instances=2, decoupled=False, max_batch_size=8, max_queue_delay_us=500)
STREAM = InService(running=1, instances=1, decoupled=True, max_batch_size=0, max_queue_delay_us=0)
ENSEMBLE = InService(running=4, instances=None, decoupled=False, max_batch_size=8, max_queue_delay_us=0)


@pytest.fixture
def statistics() -> ModelStatistics:
    """Return two requests that were answered together after 4 ms, and waited for 1 ms."""
    counts = ModelStatistics()
    for _ in range(2):
        counts.single.add(4 * MS)
        counts.queueing.add(1 * MS)
    counts.succeeded(2, 8 * MS, 2 * MS, 5)
    counts.ran(2, 5, ExecutionTimes(MS, 2 * MS, MS // 2))
    return counts


def samples(statistics: ModelStatistics, service: InService | None = MODEL, now: int = 0) -> dict[str, float]:
    """Return every sample by its name and, where it has more, its other labels' values."""
    series = [ModelSeries({"model": "m", "version": "1"}, statistics, 0, service)]
    text = exposition([*triton_families(series), *argosy_families(series, now)]).decode()
    result = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert (sample.labels.pop("model"), sample.labels.pop("version")) == ("m", "1")
            name = sample.name.removesuffix("_total") if family.name.startswith("nv_") else sample.name
            result[" ".join([name, *sample.labels.values()])] = sample.value
    return result


def test_durations_are_seconds_in_buckets(statistics):
    values = samples(statistics)
    for name, at, total in (("request", "0.005", 0.008), ("queue", "0.001", 0.002), ("first_response", "0.005", 0.008)):
        family = f"argosy_{name}_duration_seconds"
        assert values[f"{family}_sum"] == total
        assert values[f"{family}_count"] == values[f"{family}_bucket +Inf"] == values[f"{family}_bucket {at}"] == 2
    assert values["argosy_request_duration_seconds_bucket 0.003"] == 0


def test_an_execution_counts_once_and_for_triton_once_a_request(statistics):
    values = samples(statistics)
    assert values["argosy_execution_seconds_total"] == 0.0035
    assert values["nv_inference_compute_infer_duration_us"] == 2 * 2000
    assert (values["nv_inference_count"], values["nv_inference_exec_count"]) == (5, 1)
    assert (values["argosy_batch_rows_bucket 4"], values["argosy_batch_rows_bucket 8"]) == (0, 1)
    assert (values["argosy_batch_rows_sum"], values["argosy_batch_rows_count"]) == (5, 1)


def test_a_batch_above_all_bounds_counts(statistics):
    statistics.ran(1, 5000, ExecutionTimes(0, 1, 0))
    values = samples(statistics)
    assert (values["argosy_batch_rows_bucket 1024"], values["argosy_batch_rows_bucket +Inf"]) == (1, 2)
    assert values["argosy_batch_rows_sum"] == 5005


def test_the_time_of_a_load_is_in_seconds(statistics):
    statistics.load_seconds = 1.25
    assert samples(statistics)["nv_model_load_duration_secs"] == 1.25


def test_instances_and_how_busy_they_are_now(statistics):
    statistics.instance_taken(1000 * MS)
    statistics.instance_taken(1500 * MS)
    values = samples(statistics, now=2000 * MS)
    assert (values["argosy_instances"], values["argosy_instances_busy"]) == (2, 2)
    assert values["argosy_instance_busy_seconds_total"] == 1.5
    assert (values["argosy_running_requests"], values["argosy_max_batch_size"]) == (3, 8)
    assert values["argosy_max_queue_delay_seconds"] == 0.0005


def test_of_a_model_that_answers_later_no_busy_time_is_reported(statistics):
    statistics.answers_later = True
    assert not {name for name in samples(statistics) if "busy" in name or "execution" in name}


def test_reasons_are_our_own_and_tritons():
    statistics = ModelStatistics()
    for count, reason in enumerate(FailureReason, start=1):
        for _ in range(count):
            statistics.failed(0, reason)
    values, counts = samples(statistics), {reason: count for count, reason in enumerate(FailureReason, start=1)}
    assert {reason: values[f"argosy_request_failures_total {reason.value}"] for reason in FailureReason} == counts
    tritons = {
        "REJECTED": ("REJECTED", "TIMEOUT"),
        "BACKEND": ("BACKEND", "OUT_OF_MEMORY"),
        "OTHER": ("OTHER", "INVALID"),
    }
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        ours = [FailureReason(name) for name in tritons.get(reason, (reason,))]
        assert values[f"nv_inference_request_failure {reason}"] == sum(counts[our] for our in ours)


def test_a_stream_has_first_responses_in_tritons_milliseconds():
    statistics = ModelStatistics()
    for ms in (100, 101, 3000, 9000):
        statistics.responded(0, 0, ms * MS)
    statistics.took(500 * MS, 0, 500 * MS, False)
    statistics.responded(0, 100 * MS, 130 * MS)
    values = samples(statistics, STREAM)
    buckets = [
        values[f"nv_inference_first_response_histogram_ms_bucket {at}"] for at in ("100", "500", "2000", "5000", "+Inf")
    ]
    assert buckets == [1, 3, 3, 4, 5]
    assert values["nv_inference_first_response_histogram_ms_sum"] == 12701
    assert values["argosy_first_response_duration_seconds_count"] == 5
    assert values["argosy_between_responses_duration_seconds_sum"] == 0.03


def test_an_ensemble_has_no_instances_and_an_unready_model_failures(statistics):
    ensemble = samples(statistics, ENSEMBLE)
    assert not {name for name in ensemble if "instance" in name or "queue_duration_seconds" in name or "rows" in name}
    assert ensemble["argosy_running_requests"] == 4
    names = {name.split()[0].removesuffix("_total") for name in samples(statistics, None) if name.startswith("argosy")}
    assert names == {"argosy_request_failures", "argosy_model_load_failure_count"}


def test_engines_are_reported_where_there_are_any(statistics):
    assert not {name for name in samples(statistics) if "engine" in name or "token" in name}
    statistics.engines.update("m_0", EngineState(1, 2, None, 30, 40, 16, 5, asleep=True))
    service = InService(1, 1, True, 0, 0, statistics.engines.load(["m_0"]))
    values = samples(statistics, service)
    assert (values["argosy_engine_waiting_requests"], values["argosy_engine_running_requests"]) == (1, 2)
    assert (values["argosy_prompt_tokens_total"], values["argosy_tokens_total"]) == (30, 40)
    assert (values["argosy_cached_tokens_total"], values["argosy_engine_preemptions_total"]) == (16, 5)
    assert values["argosy_engines_asleep"] == 1
    assert not {name for name in values if "kv_cache" in name or "token_duration" in name}, "unknown, not 0"


def test_times_of_tokens_are_reported_once_an_engine_measures_them(statistics):
    meter = EngineMeter()
    meter.add_waited(0.005)
    meter.add_first_token(0.005)
    meter.add_between_tokens(0.005)
    meter.add_answered(1.0, 30, 40, 16)
    statistics.engines.update("m_0", EngineState(0, 0, None, 30, 40, times=meter.take()))
    values = samples(statistics, InService(1, 1, True, 0, 0, statistics.engines.load(["m_0"])))
    for name in ("engine_queue", "first_token", "between_tokens"):
        assert values[f"argosy_{name}_duration_seconds_sum"] == values[f"argosy_{name}_duration_seconds_count"] / 200
    tokens = [values[f"argosy_request_{name}_tokens_sum"] for name in ("prompt", "generated", "cached")]
    assert tokens == [30, 40, 16]


def test_executions_are_summed_by_the_size_of_their_batches(statistics):
    statistics.ran(1, 8, ExecutionTimes(0, 6 * MS, 0))
    statistics.ran(1, 2000, ExecutionTimes(0, 90 * MS, 0))
    values = samples(statistics)
    assert values["argosy_batched_rows_total 8"] == 5 + 8
    assert values["argosy_batch_seconds_total 8"] == pytest.approx(0.0095)
    assert (values["argosy_batched_rows_total +Inf"], values["argosy_batch_seconds_total +Inf"]) == (2000, 0.09)
    assert "argosy_batched_rows_total 4" not in values


def test_the_time_of_a_model_that_answers_later_is_in_no_size(statistics):
    statistics.answers_later = True
    values = samples(statistics)
    assert values["argosy_batched_rows_total 8"] == 5
    assert "argosy_batch_seconds_total 8" not in values


def test_invalid_requests_are_a_reason_of_their_own_and_other_for_triton(statistics):
    statistics.failed(MS, FailureReason.INVALID)
    values = samples(statistics)
    assert values["argosy_request_failures_total INVALID"] == 1
    assert values["argosy_request_failures_total OTHER"] == 0
    assert values["nv_inference_request_failure OTHER"] == 1
