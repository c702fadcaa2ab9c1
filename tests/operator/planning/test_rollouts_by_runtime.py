"""What NVIDIA's server cannot do of a rollout is refused with the field and the way out; what it can is not."""

from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, model, pool

from argosy.api import Resource
from argosy.planning.validation.references import check_set

TRITON = {"runtime": {"name": "triton"}}
SERVER, OTHERWISE = "NVIDIA's server of pool 'p'", "or use a pool with runtime.name argosy"
NO_WEIGHTS = (
    f"{SERVER} has no weights, by which a version would get 5%: leave it out, and write one step of "
    f'"100%" for the analysis of a switch of all traffic, {OTHERWISE}'
)
NO_KEYS = f"{SERVER} sends requests to the highest version, whatever their key: leave it out, {OTHERWISE}"


NO_HISTOGRAMS = (
    f"{SERVER} counts no durations in histograms, by which versions could be compared: leave it out, and use "
    f"analysis.queries, {OTHERWISE}"
)
REPLACED = f"{SERVER} replaces an ensemble, whose versions share one configuration: leave it out, {OTHERWISE}"


def _problems(*declared: Resource, **runtime: Any) -> list[str]:
    problems = check_set([pool(**runtime), *declared])
    return [f"{problem.resource} {problem.path}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("rollout", "field", "message"),
    [
        ({"steps": [{"traffic": "5%"}, {"traffic": "100%"}]}, "steps[0].traffic", NO_WEIGHTS),
        ({"shadow": {"traffic": "10%"}}, "shadow", f"{SERVER} mirrors no requests: leave it out, {OTHERWISE}"),
        ({"sticky": [{"header": "x-user"}]}, "sticky", NO_KEYS),
        ({"analysis": {"latency": {"p99": 2}}}, "analysis.latency", NO_HISTOGRAMS),
    ],
)
def test_what_needs_the_bundled_server_is_refused(rollout: dict[str, Any], field: str, message: str) -> None:
    declared = model("a", rollout=rollout)
    assert _problems(declared, **TRITON) == [f"InferenceModel default/a spec.rollout.{field}: {message}"]
    assert _problems(declared) == []


@pytest.mark.parametrize(
    "rollout",
    [
        {"strategy": "Recreate"},
        {"strategy": "Surge"},
        {"steps": [{"traffic": "100%", "pause": "5m"}], "analysis": {"onInconclusive": "Rollback"}},
        {"paused": True},
    ],
)
def test_a_switch_of_all_traffic_of_a_model_is_possible_there(rollout: dict[str, Any]) -> None:
    assert _problems(model("a", rollout=rollout), **TRITON) == []


def test_an_ensemble_is_replaced_there() -> None:
    parts = model("a"), ensemble("e", "a", rollout={"paused": True, "steps": [{"traffic": "100%"}]})
    assert _problems(*parts, **TRITON) == [
        f"Ensemble default/e spec.rollout.{field}: {REPLACED}" for field in ("paused", "steps")
    ]
    assert _problems(model("a"), ensemble("e", "a", rollout={"strategy": "Recreate"}), **TRITON) == []
