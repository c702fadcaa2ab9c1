"""An engine of TensorRT-LLM is served only by the release that built it: images say theirs, builds report theirs."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.planning.builds.simulated_builds import Fleet, condition, hopper, loaded, pool, says, status

from argosy.api import ConditionType, Resource
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.validation.releases import TENSORRT_LLM_OF, mismatch, release_in, release_of
from argosy_agent.contract.builds import BuildReport
from argosy_runtime.backends.tensorrtllm.opening import LAST_WITH_ENGINES

SERVER = "nvcr.io/nvidia/tritonserver:{}-trtllm-python-py3"
COMPILER = "tensorrt_llm {}, tensorrt 10.14.1.48, nvidia-modelopt 0.37.0"


@pytest.mark.parametrize(
    ("image", "release"),
    [
        (SERVER.format("26.07"), "1.2.1"),
        (SERVER.format("25.08"), "0.21.0"),
        ("mirror.test/nv/triton:26.04-trtllm-python-py3@sha256:00", "1.2.1"),
        (SERVER.format("27.01"), ""),
        ("nvcr.io/nvidia/tritonserver:26.07-py3", ""),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc8", "1.2.0rc8"),
        ("own.test/triton:every-backend", ""),
        ("", ""),
    ],
)
def test_an_images_tag_says_its_release(image: str, release: str) -> None:
    assert release_in(image) == release


def test_a_compiler_says_its_release() -> None:
    assert release_of(COMPILER.format("1.2.1")) == "1.2.1"
    assert release_of("tensorrt_llm 1.1.0") == "1.1.0"
    assert release_of("onnxruntime 1.30") == ""
    assert release_of("") == ""


@pytest.mark.parametrize(("built", "has"), [("1.2.1", "1.2.1"), ("", "1.2.1"), ("1.2.1", ""), ("", "")])
def test_equal_or_missing_releases_do_not_mismatch(built: str, has: str) -> None:
    assert mismatch(COMPILER.format(built) if built else "", has) == ""


def test_a_mismatch_names_both_releases_and_the_image_that_has_it() -> None:
    message = mismatch(COMPILER.format("1.2.1"), "0.21.0")
    assert "built by TensorRT-LLM 1.2.1, and the pool's server has 0.21.0" in message
    assert "tritonserver:26.07-trtllm-python-py3" in message
    assert LAST_WITH_ENGINES in TENSORRT_LLM_OF.values()


class Builds(Fleet):
    """A fleet whose builds are TensorRT-LLM's."""

    release = LAST_WITH_ENGINES

    def _end(self, build: ScheduledBuild) -> BuildReport:
        return replace(super()._end(build), compiler=COMPILER.format(self.release))


def a_fleet(image: str | None) -> tuple[Builds, list[Resource]]:
    """Return a fleet after its builds, with NVIDIA's server of this image."""
    runtime: dict[str, Any] = {"name": "triton", **({} if image is None else {"image": image})}
    engine = {"builder": "tensorrt_llm", "precision": "bf16"}
    model = declared.model("m", 1, modelFormat={"name": "huggingface"}, engine=engine)
    fleet = Builds([hopper(gpus=4)])
    fleet.snapshot = replace(fleet.snapshot, engine_image=SERVER.format("26.07"))
    resources = [pool(runtime=runtime), model]
    fleet.settle(resources)
    return fleet, resources


@pytest.mark.parametrize("image", [None, SERVER.format("26.04"), "own.test/triton:mine"])
def test_an_engine_of_the_servers_release_is_served(image: str | None) -> None:
    fleet, resources = a_fleet(image)
    outcome = fleet.tick(resources)
    assert says(outcome, ConditionType.ENGINE_READY)[0] == "True"
    assert loaded(fleet)


def test_an_engine_of_another_release_is_refused_with_the_way_out() -> None:
    fleet, resources = a_fleet(SERVER.format("25.12"))
    outcome = fleet.tick(resources)
    assert says(outcome, ConditionType.ENGINE_READY) == ("False", "EngineOfAnotherRelease")
    assert says(outcome, ConditionType.PLACED) == ("False", "EngineOfAnotherRelease")
    message = condition(outcome, ConditionType.ENGINE_READY).message
    assert "built by TensorRT-LLM 1.2.1, and the pool's server has 1.1.0" in message
    (engine,) = status(outcome).engines
    assert (engine.state, engine.serving, engine.compiler) == ("Ready", False, COMPILER.format("1.2.1"))
    assert not loaded(fleet)
    built = len(fleet.ever)
    fleet.tick(resources)
    assert len(fleet.ever) == built, "it is not built again by itself"


def test_a_pool_that_moves_to_another_release_stops_serving_the_engine() -> None:
    fleet, resources = a_fleet(SERVER.format("26.07"))
    assert loaded(fleet)
    moved = [pool(runtime={"name": "triton", "image": SERVER.format("26.02")}), *resources[1:]]
    fleet.settle(moved)
    assert says(fleet.tick(moved), ConditionType.ENGINE_READY) == ("False", "EngineOfAnotherRelease")
