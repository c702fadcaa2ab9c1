"""The images that the Dockerfiles make: what they hold, what they must not hold, and as whom they run."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from e2e.cluster import ClusterError, ClusterUnavailableError
from e2e.cluster.images import buildah
from e2e.starting import give_up

from argosy.environments.recipes import Device, recipe

REPOSITORY = Path(__file__).parents[2]
AS_ITS_USER = (
    'test "$(id -u):$(id -g)" = 1000:1000',
    "! command -v gcc cc c++ make ld git",
    "! python -m pip --version",
    "! touch /opt/argosy/here",
)
AS_ROOT = (
    "test -z \"$(find / -xdev -path '*/pip/http*')\"",
    "! ls -d /root/.cache /tmp/* /source /wheel /opt/build",
    "test -z \"$(find / -xdev -name '*.whl' -not -path '*/ensurepip/*' -not -path '/usr/share/*')\"",
)
RUNTIME = (
    "python -c 'import argosy_runtime.server, onnxruntime, numpy'",
    "python -m argosy_agent --help",
    "python -c 'import argosy_runtime.messages as m; assert m.__file__.endswith(\".so\")'",
    "test -w /models",
    'test "$NVIDIA_VISIBLE_DEVICES" = void',
)
OPERATOR = (
    "argosy operator --help",
    "python -c 'import argosy.controller.process, argosy.handlers.admission'",
    "python -c \"import importlib.util as u; assert not any(map(u.find_spec, ('onnxruntime', 'torch', 'uvloop')))\"",
)
WORDS = {"runtime": RUNTIME, "operator": OPERATOR}


def _step(command: str) -> str:
    return f"RUN {json.dumps(['sh', '-c', command])}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", WORDS)
def test_an_image_holds_what_it_runs_and_no_more(name: str, tmp_path: Path) -> None:
    tag = f"localhost/argosy-{name}:chart-test"
    try:
        buildah.build(REPOSITORY / name / "Dockerfile", REPOSITORY, tag)
    except ClusterUnavailableError as error:
        give_up(error)
    # What fails in this build is named by its error: a command that the image's own user cannot do.
    steps = (*map(_step, (*AS_ITS_USER, *WORDS[name])), "USER 0", *map(_step, AS_ROOT))
    (tmp_path / "Dockerfile").write_text("\n".join([f"FROM {tag}", *steps]))
    buildah.build(tmp_path / "Dockerfile", tmp_path, f"{tag}-checked")


def test_the_extras_of_the_dockerfile_are_the_projects() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    arguments = re.findall(
        r"^ARG (?:CUDA_)?EXTRAS=(\S+)$", (REPOSITORY / "runtime/Dockerfile").read_text(), re.MULTILINE
    )
    assert len(arguments) == 2
    assert set(",".join(arguments).split(",")) <= extras.keys()


def test_engines_are_built_and_run_by_one_release_of_tensorrt_llm() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    image = re.search(r"^ARG TENSORRT_LLM=\S+:(\S+)$", (REPOSITORY / "runtime/Dockerfile").read_text(), re.MULTILINE)
    assert image
    assert extras["tensorrt-llm"] == [f"tensorrt-llm=={image[1]}"]
    assert recipe("tensorrtllm", Device.CUDA, lambda: True).requirements == (f"tensorrt-llm=={image[1]}",)


@pytest.mark.timeout(1800)
def test_an_extra_that_there_is_not_ends_the_build() -> None:
    try:
        with pytest.raises(ClusterError, match=r"extra not found: onxruntime"):
            buildah.build(
                REPOSITORY / "runtime/Dockerfile", REPOSITORY, "localhost/argosy-none:chart-test",
                {"EXTRAS": "runtime,onxruntime"},
            )  # fmt: skip
    except ClusterUnavailableError as error:
        give_up(error)
