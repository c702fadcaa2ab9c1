"""Reports of engines: counters only grow; the present load is that of live processes; wrong numbers add nothing."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.backends.engines.meter import EngineMeter
from argosy_runtime.backends.engines.state import EngineState, EngineTimes, HistogramCounts
from argosy_runtime.telemetry.engines import EngineStatistics

MS = 1_000_000


def state(generated: int = 0, prompts: int = 0, waiting: int = 0, running: int = 0, cache: float | None = None):
    return EngineState(waiting, running, cache, prompts, generated)


def measured(times: EngineTimes) -> EngineState:
    return EngineState(0, 0, None, 0, 0, times=times)


def test_tokens_of_all_that_ever_were_add_up():
    engines = EngineStatistics()
    assert not engines.any
    for instance, generated in (("m_0", 0), ("m_0", 10), ("m_1", 5), ("m_0", 30), ("m_0", 4)):
        engines.update(instance, state(generated, prompts=2 * generated))
    assert engines.any
    total = engines.total()
    assert (total.generated_tokens, total.prompt_tokens) == (30 + 4 + 5, 2 * 39)
    assert engines.counters["m_1"].generated_tokens == 5


def test_a_new_process_begins_its_totals_again_all_together():
    engines = EngineStatistics()
    engines.update("m_0", EngineState(0, 0, None, 10, 10, 8, 2))
    engines.update("m_0", EngineState(0, 0, None, 30, 5, 9, 2))
    total = engines.total()
    assert (total.prompt_tokens, total.generated_tokens) == (40, 15)
    assert (total.cached_tokens, total.preemptions) == (17, 4)


def test_what_a_lost_one_reported_last_is_over():
    engines = EngineStatistics()
    engines.update("m_0", state(waiting=3, running=2, cache=0.5))
    engines.update("m_1", EngineState(1, 4, 0.75, 0, 0, asleep=True))
    load = engines.load(["m_0", "m_1"])
    assert (load.waiting, load.running, load.cache, load.asleep) == (4, 6, 0.625, 1)
    load = engines.load(["m_1"])
    assert (load.waiting, load.running, load.cache, list(load.states)) == (1, 4, 0.75, ["m_1"])
    load = engines.load([])
    assert (load.waiting, load.running, load.cache, load.asleep, load.states) == (0, 0, None, 0, {})


def test_caches_without_a_size_do_not_count():
    engines = EngineStatistics()
    engines.update("m_0", EngineState(0, 0, None, 0, 0, cache_tokens=64))
    engines.update("m_1", EngineState(0, 0, None, 0, 0, cache_tokens=-1))
    engines.update("m_2", EngineState(0, 0, None, 0, 0, cache_tokens=32))
    assert engines.load(["m_0", "m_1", "m_2"]).cache_tokens == 96
    assert engines.load(["m_1"]).cache_tokens is None
    assert engines.load([]).cache_tokens is None


def test_a_cache_that_cannot_be_so_is_unknown():
    engines = EngineStatistics()
    engines.update("m_0", state(cache=float("nan"), waiting=-1))
    engines.update("m_1", state(cache=1.5))
    load = engines.load(["m_0", "m_1"])
    assert (load.waiting, load.running, load.cache) == (0, 0, None)


def test_times_of_all_reports_and_engines_add_up():
    engines, meter = EngineStatistics(), EngineMeter()
    assert not engines.total().measured
    meter.add_waited(0.002)
    meter.add_first_token(0.005)
    meter.add_first_token(0.040)
    engines.update("m_0", measured(meter.take()))
    meter.add_first_token(0.007)
    meter.add_between_tokens(0.001, 3)
    engines.update("m_0", measured(meter.take()))
    meter.add_first_token(0.009)
    meter.add_answered(0.5, 100, 3, 64)
    engines.update("m_1", measured(meter.take()))
    total = engines.total()
    assert total.measured
    assert (sum(total.first_token.counts), total.first_token.ns) == (4, 61 * MS)
    assert (sum(total.between_tokens.counts), total.between_tokens.ns) == (3, 3 * MS)
    assert (sum(total.waited.counts), total.answered.ns) == (1, 500 * MS)
    assert engines.counters["m_0"].first_token.ns == 52 * MS, "the sum is a copy"
    tokens = (total.request_prompt_tokens, total.request_generated_tokens, total.request_cached_tokens)
    assert [histogram.total for histogram in tokens] == [100, 3, 64]
    assert [sum(histogram.counts) for histogram in tokens] == [1, 1, 1]


def test_times_that_cannot_be_add_nothing():
    engines, nothing = EngineStatistics(), EngineMeter().take()
    counts = nothing.waited.counts
    engines.update(
        "m_0",
        measured(
            EngineTimes(
                waited=HistogramCounts([1, 2], 3),
                first_token=HistogramCounts([-1, *counts[1:]], 0),
                between_tokens=HistogramCounts(counts, 1 << 62),
                answered=HistogramCounts(counts, -1),
                prompt_tokens=HistogramCounts([1, 2], 3),
                cached_tokens=HistogramCounts([1 << 62, *nothing.cached_tokens.counts[1:]], 0),
                generated_tokens=HistogramCounts([], 0),
            )
        ),
    )
    total = engines.total()
    assert [total.waited.ns, total.first_token.ns, total.between_tokens.ns, total.answered.ns] == [0, 0, 0, 0]
    assert not any(total.first_token.counts)
    assert not any(total.request_cached_tokens.counts)
    assert total.request_prompt_tokens.total == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-5, 50), st.integers(-5, 50))))
def test_counters_never_go_back(reports):
    engines, before = EngineStatistics(), (0, 0)
    for instance, generated, prompts in reports:
        engines.update(instance, state(generated, prompts))
        total = engines.total()
        now = (total.generated_tokens, total.prompt_tokens)
        assert now[0] >= before[0]
        assert now[1] >= before[1]
        before = now
