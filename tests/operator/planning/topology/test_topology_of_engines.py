"""What a build tells of a model's shape: the advice on its condition, and what it takes of a GPU."""

from dataclasses import replace
from typing import Any

from tests.operator.planning import declared
from tests.operator.planning.builds.simulated_builds import Fleet, condition, failed, hopper, pool
from tests.operator.planning.simulated_cluster import POOL
from tests.operator.planning.topology.shapes import GIB, shape

from argosy.api import ConditionType, Resource
from argosy.planning.builds.build import ScheduledBuild
from argosy_agent.contract.builds import BuildFailure, BuildReport

LLAMA = replace(shape("llama-3-8b"), weight_bytes=16 * GIB)


class Shaped(Fleet):
    """Builds that tell a shape."""

    def _end(self, build: ScheduledBuild) -> BuildReport:
        return replace(super()._end(build), shape=LLAMA)


def language_model(**spec: Any) -> Resource:
    engine = {"builder": "tensorrt_llm", "options": {"max_seq_len": 8192}}
    fields = {"modelFormat": {"name": "huggingface"}, "footprint": {}, "inputs": [], "outputs": [], "engine": engine}
    return declared.model("m", **{**fields, **spec})


def test_a_built_engines_shape_sizes_it_and_brings_advice() -> None:
    traffic = {"promptTokens": 100, "outputTokens": 900}
    spec = {"parallelism": {"tensor": 4}, "traffic": traffic, "footprint": {"gpus": 4}}
    fleet = Shaped((hopper(gpus=8, nvlink=(frozenset(range(8)),)),))
    resources = [pool(runtime={"name": "triton"}), language_model(**spec)]
    outcome = fleet.tick(resources)
    assert "DecodeHeavy" not in condition(outcome, ConditionType.VALID).message
    outcome = fleet.settle(resources)
    valid = condition(outcome, ConditionType.VALID)
    assert (valid.status.value, valid.reason) == ("True", "TopologyAdvice")
    assert "DecodeHeavy: decode-heavy traffic at parallelism.tensor 4" in valid.message
    (facts,) = outcome.facts
    (demand,) = facts.groups[0].demands
    assert demand.footprint.gpus == 4
    assert 4 * GIB < demand.footprint.memory < 8 * GIB  # its own 16 GiB over four, a context, one sequence


def test_a_build_that_failed_brings_none() -> None:
    fleet = Shaped((hopper(),))
    resources = [pool(runtime={"name": "triton"}), language_model()]
    fleet.fails["s3://b/m/1"] = failed(BuildFailure.INVALID_OPTIONS)
    outcome = fleet.settle(resources)
    assert condition(outcome, ConditionType.VALID).reason == "Valid"
    assert not outcome.plan.pools[0].servers
    assert POOL in outcome.builds
