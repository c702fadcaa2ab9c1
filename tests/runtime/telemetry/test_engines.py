"""Reports of engines: counts of tokens only grow; the present load is that of live processes."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.backends.contract import EngineState
from argosy_runtime.telemetry.engines import EngineLoad, EngineStatistics


def state(generated: int = 0, prompts: int = 0, waiting: int = 0, running: int = 0, cache: float | None = None):
    return EngineState(waiting, running, cache, prompts, generated)


def test_tokens_of_all_that_ever_were_add_up():
    engines = EngineStatistics()
    assert not engines.any
    for instance, generated in (("m_0", 0), ("m_0", 10), ("m_1", 5), ("m_0", 30), ("m_0", 4)):
        engines.update(instance, state(generated, prompts=2 * generated))
    assert engines.any
    assert (engines.generated_tokens, engines.prompt_tokens) == (30 + 4 + 5, 2 * 39)


def test_what_a_lost_one_reported_last_is_over():
    engines = EngineStatistics()
    engines.update("m_0", state(waiting=3, running=2, cache=0.5))
    engines.update("m_1", state(waiting=1, running=4, cache=0.75))
    assert engines.load(["m_0", "m_1"]) == EngineLoad(4, 6, 0.625)
    assert engines.load(["m_1"]) == EngineLoad(1, 4, 0.75)
    assert engines.load([]) == EngineLoad(0, 0, None)


def test_a_cache_that_cannot_be_so_is_unknown():
    engines = EngineStatistics()
    engines.update("m_0", state(cache=float("nan"), waiting=-1))
    engines.update("m_1", state(cache=1.5))
    assert engines.load(["m_0", "m_1"]) == EngineLoad(0, 0, None)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-5, 50), st.integers(-5, 50))))
def test_counters_never_go_back(reports):
    engines, before = EngineStatistics(), (0, 0)
    for instance, generated, prompts in reports:
        engines.update(instance, state(generated, prompts))
        now = (engines.generated_tokens, engines.prompt_tokens)
        assert now[0] >= before[0]
        assert now[1] >= before[1]
        before = now
