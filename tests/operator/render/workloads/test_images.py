"""Which image a pool's servers run: the release's for the runtime, in the variant that the models need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operator.planning import declared
from tests.operator.render.workloads.cases import read_case

from argosy.api import InferenceModel, ServingPool
from argosy.cli.cluster import operator
from argosy.planning.plan import ServerPlan
from argosy.planning.validation.releases import TENSORRT_LLM_OF
from argosy.planning.validation.runtimes import BUNDLED, BUNDLED_IMAGES, BundledImage, choose_bundled_image
from argosy.render.workloads import Images, pod_template
from argosy_agent.contract import RenderedRepository
from argosy_runtime.backends.tensorrtllm.opening import LAST_WITH_ENGINES

TAGS = ("vllm-python-py3", "trtllm-python-py3")


def _of_format(pool: ServingPool, name: str) -> InferenceModel:
    metadata = {"namespace": pool.namespace}
    return declared.model(
        name.replace("_", "-"), metadata=metadata, poolRef={"name": pool.name}, modelFormat={"name": name}
    )


@pytest.mark.parametrize(
    ("formats", "image"),
    [
        ([], "tritonserver:1-py3"),
        (["python", "onnx", "tensorrt"], "tritonserver:1-py3"),
        (["python", "vllm"], "tritonserver:1-vllm-python-py3"),
        (["tensorrt_llm", "python"], "tritonserver:1-trtllm-python-py3"),
    ],
)
def test_nvidias_image_follows_from_the_formats(formats: list[str], image: str) -> None:
    images = Images("argosy", "tritonserver:1-py3", "agent", "Always", *(f"tritonserver:1-{tag}" for tag in TAGS))
    pool = read_case("triton_with_own_image").pool
    own = images.serving(pool, [_of_format(pool, name) for name in formats])
    assert own.triton == image
    assert len(own.backends) == len(formats)
    assert (own.argosy, own.agent, own.pull_policy) == ("argosy", "agent", "Always")
    others = pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"name": "other"})})
    assert images.serving(others, [_of_format(pool, name) for name in formats]) == images


IMAGES_BY_TARGET = Images(
    "a", "triton", "a", argosy_cuda="a-cuda", argosy_vllm="a-vllm", argosy_tensorrt_llm="a-tensorrt-llm"
)


@pytest.mark.parametrize(
    ("formats", "on_cpu", "on_gpu"),
    [
        ([], "a", "a-cuda"),
        (["python", "onnx"], "a", "a-cuda"),
        (["python", "pytorch"], "a-cuda", "a-cuda"),
        (["huggingface"], "a-cuda", "a-cuda"),
        (["onnx", "vllm", "pytorch"], "a-vllm", "a-vllm"),
        (["tensorrt_llm", "onnx"], "a-tensorrt-llm", "a-tensorrt-llm"),
    ],
)
def test_the_bundled_servers_image_follows_from_the_formats_and_the_gpus(
    formats: list[str], on_cpu: str, on_gpu: str
) -> None:
    for gpus, image in (((), on_cpu), ((0,), on_gpu)):
        assert _container(gpus, *formats, runtime="argosy", images=IMAGES_BY_TARGET)["image"] == image
        # Releases that have one image alone.
        assert _container(gpus, *formats, runtime="argosy")["image"] == "argosy"


def test_a_model_for_which_no_target_has_the_others_backends_is_left_out_with_the_reason() -> None:
    pool = declared.pool("p")
    models = [declared.model(name.replace("_", "-"), modelFormat={"name": name}) for name in ("tensorrt_llm", "vllm")]
    choice = choose_bundled_image(pool, models)
    assert choice.image is BundledImage.TENSORRT_LLM
    (reason,) = choice.refused.values()
    assert reason == (
        "format 'vllm' needs the bundled server's image of the target vllm, which does not have the backend "
        "tensorrtllm of 'tensorrt-llm' in pool 'p': put one of the two into a pool of its own, or give the pool an "
        "image with both backends (spec.runtime.image)"
    )


def test_every_backend_of_the_bundled_server_is_in_an_image_of_it() -> None:
    assert frozenset().union(*BUNDLED_IMAGES.values()) >= BUNDLED
    dockerfile = (Path(__file__).parents[4] / "runtime/Dockerfile").read_text()
    assert set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.MULTILINE)) >= set(BundledImage)


def _container(
    gpus: tuple[int, ...], *formats: str, runtime: str = "triton", images: Images | None = None
) -> dict[str, Any]:
    """Return the server's container, with the Pod's volumes, of a pool with models of these formats."""
    pool = declared.pool("p", runtime={"name": runtime})
    models = [declared.model(name.replace("_", "-"), modelFormat={"name": name}) for name in formats]
    images = (images or Images("argosy", "triton", "agent")).serving(pool, models)
    template = pod_template(pool, ServerPlan("p-0", "n", gpus, ()), RenderedRepository("p-0"), images)
    (container,) = (item for item in template["spec"]["containers"] if item["name"] == "server")
    return {**container, "volumes": template["spec"]["volumes"]}


@pytest.mark.parametrize(
    ("gpus", "formats", "runtime", "orchestrates"),
    [
        ((2, 3), ["tensorrt_llm"], "triton", True),
        ((2,), ["tensorrt_llm"], "triton", False),
        ((2, 3), ["vllm"], "triton", False),
        ((2, 3), ["tensorrt_llm"], "argosy", False),
    ],
)
def test_a_server_starts_the_processes_of_a_split_engine_itself(
    gpus: tuple[int, ...], formats: list[str], runtime: str, orchestrates: bool
) -> None:
    container = _container(gpus, *formats, runtime=runtime)
    variables = {item["name"]: item.get("value") for item in container["env"]}
    assert (variables.get("TRTLLM_ORCHESTRATOR") == "1") is orchestrates
    pools = [argument for argument in container["args"] if "memory-pool" in argument]
    expected = [
        "--pinned-memory-pool-byte-size=0",
        "--cuda-memory-pool-byte-size=0:0",
        "--cuda-memory-pool-byte-size=1:0",
    ]
    assert pools == (expected if orchestrates else [])


@pytest.mark.parametrize(
    ("gpus", "model_format", "runtime", "shares"),
    [
        ((0,), "python", "triton", True),
        ((), "python", "triton", True),
        ((0,), "python", "argosy", False),
        ((0, 1), "python", "argosy", True),
        ((), "vllm", "argosy", True),
        ((0,), "tensorrt_llm", "argosy", True),
    ],
)
def test_shared_memory_is_memory_where_processes_share_tensors(
    gpus: tuple[int, ...], model_format: str, runtime: str, shares: bool
) -> None:
    container = _container(gpus, model_format, runtime=runtime)
    mounted = {item["mountPath"]: item["name"] for item in container["volumeMounts"]}
    assert ("/dev/shm" in mounted) is shares
    volumes = {item["name"]: item for item in container["volumes"]}
    if shares:
        assert volumes[mounted["/dev/shm"]]["emptyDir"] == {"medium": "Memory"}


def test_the_releases_images_have_the_release_that_builds_engines() -> None:
    values = yaml.safe_load(Path("charts/argosy/values.yaml").read_text())["images"]
    assert TENSORRT_LLM_OF[values["tritonTrtllm"]["tag"].split("-")[0]] == LAST_WITH_ENGINES
    assert f"nvcr.io/nvidia/tritonserver:{values['tritonTrtllm']['tag']}" == operator.TRITON_TRTLLM_IMAGE
    assert operator.TRITON_VLLM_IMAGE.endswith(values["tritonVllm"]["tag"])
    assert operator.TRITON_IMAGE.endswith(values["triton"]["tag"])
