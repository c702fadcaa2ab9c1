"""Packages of AOTInductor, compiled for real, and answered by the backend that serves them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from argosy_agent.contract.builds import BuildFailure, BuildState
from argosy_builder import registry
from argosy_runtime.backends.pytorch import packages

from .conftest import FEATURES, Builds


@pytest.mark.timeout(600)
def test_an_exported_program_becomes_a_package_that_answers_alike(builds: Builds) -> None:
    builds.exported()

    report = builds.run(gate=builds.gate)

    assert report.state is BuildState.READY
    assert report.accuracy is not None
    assert report.accuracy.samples == 12
    package = Path(report.uri.removeprefix("file://"), "model.pt2")
    opened = packages.loaded(package, -1)
    assert packages.input_names(opened) == ["features", "scale"]
    assert packages.metadata_of(package)["AOTI_CPU_ISA"] == "AVX2", "any server of the architecture runs it"
    for batch in (1, 4, 6):
        inputs = torch.randn(batch, FEATURES), torch.randn(batch, 1)
        torch.testing.assert_close(opened(*inputs), builds.module()(*inputs))
    # The configuration may name inputs in any order: the package knows its arguments' names.
    turned = tuple(reversed(builds.request.inputs))
    with registry.resolve("aotinductor").runner(package.parent, replace(builds.request, inputs=turned)) as runner:
        features, scale = torch.randn(2, FEATURES), torch.randn(2, 1)
        answer = runner.run({"scale": scale.numpy(), "features": features.numpy()})["scores"]
    torch.testing.assert_close(torch.from_numpy(answer), builds.module()(features, scale))


@pytest.mark.timeout(600)
def test_a_python_file_is_exported_in_bf16(builds: Builds) -> None:
    builds.source()
    gate = replace(builds.gate, maximum=0.05)

    report = builds.run(precision="bf16", gate=gate)

    assert report.accuracy is not None
    assert 0.0 < report.accuracy.value < 0.05, "bf16 is not fp32"
    assert {report.phase for report in builds.reports} >= {"fetch", "export", "compile", "check", "accuracy", "publish"}


def test_a_fixed_batch_cannot_be_served_in_batches(builds: Builds) -> None:
    builds.exported(most=0)

    error = builds.error()

    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "features has the fixed batch 2" in error.message
    assert "dynamic_shapes" in error.message


def test_a_program_for_smaller_batches(builds: Builds) -> None:
    builds.exported(most=4)

    assert "batches from 1 to 4" in builds.error().message


def test_a_program_that_is_cut_off(builds: Builds) -> None:
    path = builds.exported()
    path.write_bytes(path.read_bytes()[:-100])

    assert builds.error().failure is BuildFailure.MODEL_INVALID


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_torchscript_is_not_taken(builds: Builds) -> None:
    inputs = torch.zeros(2, FEATURES), torch.zeros(2, 1)
    torch.jit.trace(builds.module(), inputs).save(str(builds.folder / "model/model.pt"))  # type: ignore[no-untyped-call]

    error = builds.error()

    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "TorchScript" in error.message


def test_source_that_gives_no_module(builds: Builds) -> None:
    (builds.folder / "model/model.py").write_text("import nothing_of_that_name\n")

    error = builds.error()

    assert error.failure is BuildFailure.MODEL_INVALID
    assert "nothing_of_that_name" in error.message


def test_a_module_that_torch_export_does_not_take(builds: Builds) -> None:
    builds.source()
    text = (builds.folder / "model/model.py").read_text()
    branch = "if features.sum() > 0: return scale\n        return self.out"
    (builds.folder / "model/model.py").write_text(text.replace("return self.out", branch))

    error = builds.error()

    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "torch.export" in error.message


def test_without_a_compiler_it_says_so_at_once(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-g++")

    error = builds.error()

    assert error.failure is BuildFailure.BUILDER_MISSING
    assert "no-such-g++" in error.message
    assert "engine.image" in error.message


@pytest.mark.parametrize(
    ("changes", "failure", "says"),
    [
        ({"options": {"max_autotun": True}}, BuildFailure.INVALID_OPTIONS, "did you mean 'max_autotune'"),
        ({"options": {"freezing": "yes"}}, BuildFailure.INVALID_OPTIONS, "engine.options.freezing: expected true"),
        ({"precision": "fp16"}, BuildFailure.INVALID_OPTIONS, "bf16"),
        ({"precision": "int8"}, BuildFailure.INVALID_OPTIONS, "aotinductor makes fp32, bf16, fp16, and not int8"),
        ({"architecture": "arm64"}, BuildFailure.BUILDER_MISSING, "node of arm64"),
    ],
)
def test_what_it_cannot_do(builds: Builds, changes: dict[str, object], failure: BuildFailure, says: str) -> None:
    builds.source()

    error = builds.error(**changes)

    assert error.failure is failure
    assert says in error.message
