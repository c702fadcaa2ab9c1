"""vLLM's names: labels, sleep states, adapters and the prefix cache of each engine, and what is left out."""

from prometheus_client.parser import text_string_to_metric_families

from argosy_runtime.backends.engines.meter import EngineMeter, MeteredRequest
from argosy_runtime.backends.engines.state import AdapterState, EngineState
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.vllm_families import vllm_families

NOW = 1_700_000_000.5


def samples(statistics: ModelStatistics, alive: list[str]) -> dict[str, float]:
    """Return every sample by its name and the values of its labels but the model's."""
    service = InService(1, len(alive), True, 0, 0, statistics.engines.load(alive) if statistics.engines.any else None)
    series = [ModelSeries({"model": "llm", "version": "3", "_team": "x"}, statistics, 0, service)]
    result = {}
    for family in text_string_to_metric_families(exposition(vllm_families(series, NOW)).decode()):
        for sample in family.samples:
            assert (sample.labels.pop("model_name"), sample.labels.pop("version")) == ("llm", "3")
            assert sample.labels.pop("_team") == "x"
            result[" ".join([sample.name, *sample.labels.values()])] = sample.value
    return result


def test_models_without_an_engine_have_none_of_it():
    assert samples(ModelStatistics(), ["m_0"]) == {}


def test_every_engine_has_its_own_gauges_and_counters():
    statistics = ModelStatistics()
    statistics.engines.update("m_0", EngineState(1, 2, 0.25, 30, 40, 16, 5))
    statistics.engines.update("m_1", EngineState(3, 4, None, 50, 60))
    values = samples(statistics, ["m_0", "m_1"])
    assert [values[f"vllm:num_requests_waiting {engine}"] for engine in "01"] == [1, 3]
    assert [values[f"vllm:num_requests_running {engine}"] for engine in "01"] == [2, 4]
    assert values["vllm:kv_cache_usage_perc 0"] == 0.25
    assert [values[f"vllm:prompt_tokens_total {engine}"] for engine in "01"] == [30, 50]
    assert [values[f"vllm:generation_tokens_total {engine}"] for engine in "01"] == [40, 60]
    assert [values[f"vllm:num_preemptions_total {engine}"] for engine in "01"] == [5, 0]
    assert [values["vllm:prefix_cache_queries_total 0"], values["vllm:prefix_cache_hits_total 0"]] == [30, 16]
    assert not {name for name in values if name.endswith("1") and ("prefix" in name or "perc" in name)}, "unknown"
    assert not {name for name in values if "latency" in name or "time" in name}, "not measured"


def test_a_lost_engine_keeps_its_counters_alone():
    statistics = ModelStatistics()
    statistics.engines.update("m_0", EngineState(1, 2, 0.25, 30, 40))
    values = samples(statistics, [])
    assert values["vllm:generation_tokens_total 0"] == 40
    assert not {name for name in values if "num_requests" in name or "usage" in name or "sleep" in name}


def test_an_engine_is_in_one_state_of_sleep():
    statistics = ModelStatistics()
    for asleep, state in ((False, "awake"), (True, "weights_offloaded")):
        statistics.engines.update("m_0", EngineState(0, 0, None, 0, 0, asleep=asleep))
        values = {name.split()[-1]: value for name, value in samples(statistics, ["m_0"]).items() if "sleep" in name}
        assert values == {name: int(name == state) for name in ("awake", "weights_offloaded", "discard_all")}


def test_adapters_are_named_by_labels_at_a_time():
    statistics = ModelStatistics()
    statistics.engines.update("m_0", EngineState(0, 0, None, 0, 0, adapters=AdapterState(["a", "b"], [], 4)))
    assert samples(statistics, ["m_0"])["vllm:lora_requests_info 0 4 a,b "] == NOW


def test_times_and_tokens_of_requests_are_histograms():
    statistics, meter = ModelStatistics(), EngineMeter()
    request = MeteredRequest(meter, 100, now=0.0)
    request.began(0.125)
    request.generated(1, 0.25)
    request.generated(2, 0.5)
    request.answered(0.5, cached_tokens=64)
    statistics.engines.update("m_0", EngineState(0, 0, None, 100, 3, 64, times=meter.take()))
    values = samples(statistics, ["m_0"])
    for name, total, count in (
        ("time_to_first_token_seconds", 0.25, 1),
        ("inter_token_latency_seconds", 0.25, 2),
        ("e2e_request_latency_seconds", 0.5, 1),
        ("request_queue_time_seconds", 0.125, 1),
        ("request_prompt_tokens", 100, 1),
        ("request_generation_tokens", 3, 1),
    ):
        assert (values[f"vllm:{name}_sum 0"], values[f"vllm:{name}_count 0"]) == (total, count)
    assert values["vllm:request_prompt_tokens_bucket 0 64"] == 0
    assert values["vllm:request_prompt_tokens_bucket 0 128"] == 1
