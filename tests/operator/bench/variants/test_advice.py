"""Which variant suits a traffic: by objectives, requests in flight and what a server can answer."""

import math

import pytest
from tests.operator.bench.measuring import Speeds, results_of

from argosy.api.model.scaling.slo import Slo
from argosy.bench.results import Results
from argosy.bench.variants.advice import Advice, Traffic, advice, results_for
from argosy.bench.variants.crossovers import MeasuredVariant
from argosy.bench.variants.objectives import objectives, unmeasured

COMPILED = {1: 10.0, 8: 40.0, 64: 50.0}
VLLM = {1: 5.0, 8: 32.0, 64: 160.0}
SPEEDS = {"compiled": COMPILED, "vllm": VLLM}
"""By Little's law a request of `compiled` takes 0.1, 0.2 and 1.28 s, one of `vllm` 0.2, 0.25 and 0.4 s."""


def advice_at(rate: float | None, servers: int = 1, speeds: Speeds = SPEEDS, **slo: object) -> Advice:
    limits = objectives(Slo.model_validate(slo)) if slo else []
    variants = [MeasuredVariant(name, name) for name in speeds]
    return advice(Traffic(rate, servers, limits), variants, results_of(speeds))


@pytest.mark.parametrize(
    ("rate", "servers", "variant", "in_flight"),
    [(5.0, 1, "compiled", 0.5), (40.0, 1, "compiled", 8.0), (100.0, 1, "vllm", 35.0), (40.0, 8, "compiled", 0.5)],
)
def test_of_variants_without_objectives_that_with_the_fewest_in_flight(rate, servers, variant, in_flight) -> None:
    answer = advice_at(rate, servers)
    chosen = next(one for one in answer.judgements if one.variant == answer.variant)
    assert answer.variant == variant
    assert chosen.in_flight == pytest.approx(in_flight, rel=0.15)


def test_the_arithmetic_is_littles_law_and_the_crossover_is_reported() -> None:
    answer = advice_at(5.0)
    assert answer.reasons[0] == "compiled: 5/s x 0.1 s = 0.5 in flight: within its rate; a server answers up to 50/s"
    assert answer.reasons[2].startswith("crossover: compiled is better up to ")
    assert answer.reasons[2].endswith(" in flight on a server, vllm above")


def test_only_what_meets_the_objectives_suits() -> None:
    """At 45/s `compiled` is on its way to 1.28 s."""
    answer = advice_at(45.0, latency={"p95": "400ms"})
    assert answer.variant == "vllm"
    assert "latency p95 is" in answer.reasons[0]
    assert "more than 400ms" in answer.reasons[0]
    assert "meets the objectives" in answer.reasons[1]


def test_beyond_what_one_server_answers_the_fewest_servers_decide() -> None:
    answer = advice_at(900.0, latency={"p50": "450ms"})
    assert answer.variant == "vllm"
    needs = [one.needs for one in answer.judgements]
    assert needs[1] is not None
    assert needs == [math.ceil(900 / answer.judgements[0].most), math.ceil(900 / answer.judgements[1].most)]
    assert f"vllm suits with {needs[1]} servers, the fewest" in answer.conclusion
    assert "no more than 50/s were measured" in answer.reasons[0]


@pytest.mark.parametrize(("slo", "variant"), [({}, "vllm"), ({"latency": {"p99": "150ms"}}, "compiled")])
def test_without_a_rate_the_most_requests_a_second(slo: dict, variant: str) -> None:
    assert advice_at(None, **slo).variant == variant


def test_none_suits_objectives_that_no_level_meets() -> None:
    answer = advice_at(1.0, time_to_first_token={"p50": "1ms"})
    assert (answer.variant, answer.conclusion) == (
        "", "none suits: no variant meets the objectives at any measured level"
    )  # fmt: skip


def test_objectives_that_are_not_measured_are_named() -> None:
    slo = Slo.model_validate({"queueDelay": {"p90": "5ms"}, "errorRate": "1%", "latency": {"p999": "1s"}})
    assert unmeasured(slo) == ["slo.queueDelay", "slo.errorRate", "slo.latency.p999"]
    assert objectives(slo) == []
    assert unmeasured(None) == []


def lengths(prompt: int, output: int) -> Results:
    return results_of({"a": {1: 1.0}}, prompt_tokens=prompt, output_tokens=output)


def test_results_of_other_lengths_say_nothing() -> None:
    short, long = lengths(256, 64), lengths(4000, 64)
    assert results_for([short, long], 300, None) is short
    assert results_for([short, long], 3500, 64) is long
    assert results_for([short], None, None) is short
    with pytest.raises(ValueError, match="measure with argosy bench --prompt-tokens 1000"):
        results_for([short, long], 1000, None)
    with pytest.raises(ValueError, match="several results fit"):
        results_for([short, long], None, None)
