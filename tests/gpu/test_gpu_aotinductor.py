"""Packages of AOTInductor, compiled for this GPU and answered by the backend that serves them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.builder.aotinductor.conftest import CLASSES, FEATURES, Builds, builds

from argosy_agent.contract.builds import BuildFailure, BuildState
from argosy_builder.contract import BuildError
from argosy_runtime.backends.pytorch import packages

__all__ = ["builds"]


def capability(gpu: torch.device) -> str:
    return ".".join(map(str, torch.cuda.get_device_capability(gpu)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("precision", "maximum"), [("fp32", 1e-4), ("fp16", 0.05)])
def test_a_package_for_this_gpu_answers_as_the_module_does(
    builds: Builds, gpu: torch.device, precision: str, maximum: float
) -> None:
    builds.source()

    gate = replace(builds.gate, maximum=maximum)
    report = builds.run(architecture=capability(gpu), precision=precision, gate=gate)

    assert report.state is BuildState.READY, report
    assert report.accuracy is not None
    assert report.accuracy.value <= maximum
    opened = packages.loaded(Path(report.uri.removeprefix("file://"), "model.pt2"), gpu.index)
    for batch in (1, 4, 6):
        inputs = torch.randn(batch, FEATURES, device=gpu), torch.randn(batch, 1, device=gpu)
        answer = opened(*inputs)
        answer = answer[0] if isinstance(answer, list | tuple) else answer
        assert answer.shape == (batch, CLASSES)
        assert answer.device == gpu
        torch.testing.assert_close(
            answer.float().cpu(), builds.module()(*(tensor.cpu() for tensor in inputs)), atol=maximum, rtol=0.01
        )


def test_another_architecture_is_refused(builds: Builds) -> None:
    builds.source()
    with pytest.raises(BuildError, match=r"5\.2 was requested") as raised:
        builds.run(architecture="5.2")
    assert raised.value.failure is BuildFailure.BUILDER_MISSING
