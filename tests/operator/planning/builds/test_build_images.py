"""The images that builds run in: the release's, and those that the pool allows, whatever a model names."""

import pytest
from tests.operator.planning.builds.simulated_builds import STORE, Fleet, built, condition, hopper, pool, says
from tests.operator.planning.simulated_cluster import POOL

from argosy.api import ConditionType, Resource
from argosy.api.engine.engine import Builder
from argosy.api.pool.builds import Builds
from argosy.planning.builds.images import BuildImages
from argosy.planning.validation import references

THEIRS = "registry.example.com/theirs/builder:2"


def requested(image: str = THEIRS, **spec: object) -> list[Resource]:
    """Return a pool of this spec, and a model that names the image."""
    return [pool(**spec), built("m", engine={"image": image})]


@pytest.mark.parametrize(
    ("image", "allowed", "result"),
    [
        ("r/builder:1", ("r/builder:1",), True),
        ("r/builder:2", ("r/builder:1",), False),
        ("r/builder:1-evil", ("r/builder:1",), False),
        ("r/team/any:3", ("other", "r/team/*"), True),
        ("r/teams/any:3", ("r/team/*",), False),
        ("anything", (), False),
    ],
)
def test_an_image_is_allowed_by_its_name_or_by_how_it_begins(
    image: str, allowed: tuple[str, ...], result: bool
) -> None:
    assert Builds(allowed_images=allowed).allows(image) is result


def test_a_model_with_an_image_that_its_pool_forbids_is_refused() -> None:
    fleet = Fleet((hopper(),))
    outcome = fleet.settle(requested())
    assert says(outcome, ConditionType.VALID) == ("False", "InvalidSpec")
    message = condition(outcome, ConditionType.VALID).message
    assert "spec.engine.image: pool" in message
    assert THEIRS in message
    assert "spec.builds.allowedImages" in message
    assert fleet.ever == []


def test_no_job_runs_a_forbidden_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_build_images", lambda resources: iter(()))
    fleet = Fleet((hopper(),))
    outcome = fleet.tick(requested())
    (build,) = outcome.builds[POOL]
    assert (build.start, build.gpus) == (False, ())
    assert "does not allow builds in this image" in build.waits
    assert fleet.ever == []


def test_a_build_in_an_image_that_is_allowed_no_more_ends() -> None:
    fleet = Fleet((hopper(),), stuck=True)
    fleet.tick(requested(builds={"allowedImages": [THEIRS]}))
    assert [build.image for build, _ in fleet.jobs.values()] == [THEIRS]
    fleet.tick(requested())
    assert fleet.jobs == {}


@pytest.mark.parametrize(
    "spec", [{"builds": {"allowedImages": [THEIRS]}}, {"runtime": {"name": "argosy", "image": THEIRS}}]
)
def test_an_image_that_the_pool_allows_builds(spec: dict[str, object]) -> None:
    fleet = Fleet((hopper(),))
    outcome = fleet.settle(requested(**spec))
    assert says(outcome) == ("True", "Serving")
    assert [build.image for build in fleet.ever] == [THEIRS]
    assert fleet.ever[0].request.store == STORE


def test_the_releases_image_builds_in_every_pool() -> None:
    fleet = Fleet((hopper(),))
    assert says(fleet.settle([pool(), built("m")])) == ("True", "Serving")
    assert [build.image for build in fleet.ever] == [fleet.image]


@pytest.mark.parametrize(
    ("builder", "architecture", "image"),
    [
        (Builder.ONNXRUNTIME, "amd64", "r:1"),
        (Builder.ONNXRUNTIME, "9.0", "r:1-cuda"),
        (Builder.AOTINDUCTOR, "amd64", "r:1-cuda"),
        (Builder.TENSORRT, "9.0", "r:1-cuda"),
        (Builder.TENSORRT_LLM, "9.0", "r:1-tensorrt-llm"),
    ],
)
def test_the_releases_images_build_what_they_have_the_compiler_of(
    builder: Builder, architecture: str, image: str
) -> None:
    images = BuildImages("r:1", "r:1-cuda", "r:1-tensorrt-llm")
    assert images.of(builder, architecture) == image
    assert images.has(image)
    assert not images.has("another")
    assert BuildImages("r:1").of(builder, architecture) == "r:1"
