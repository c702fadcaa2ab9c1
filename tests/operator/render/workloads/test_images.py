"""Which image a pool's servers run: the release's for the runtime, in the variant that the models need."""

import pytest
from tests.operator.planning import declared
from tests.operator.render.workloads.cases import read_case

from argosy.api import InferenceModel, ServingPool
from argosy.render.workloads import Images

VARIANTS = ("vllm-python-py3", "trtllm-python-py3")


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
    images = Images(
        "argosy", "tritonserver:1-py3", "agent", "Always", *(f"tritonserver:1-{variant}" for variant in VARIANTS)
    )
    pool = read_case("triton_with_own_image").pool
    own = images.serving(pool, [_of_format(pool, name) for name in formats])
    assert own.triton == image
    assert (own.argosy, own.agent, own.pull_policy) == ("argosy", "agent", "Always")
    others = pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"name": "other"})})
    assert images.serving(others, [_of_format(pool, name) for name in formats]) == images
