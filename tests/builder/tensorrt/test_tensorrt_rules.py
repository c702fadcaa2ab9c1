"""The rules of TensorRT's requests and messages: shapes, settings, steps, causes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.backends.plans import standin

from argosy_agent.contract.builds import BuildFailure, BuildRequest, DataSource, TensorSpec
from argosy_builder.contract import BuildError
from argosy_builder.tensorrt.causes import failed
from argosy_builder.tensorrt.profiles import NetworkInput, profiles_of
from argosy_builder.tensorrt.settings import Settings, settings_of

REQUEST: dict[str, Any] = {
    "builder": "tensorrt",
    "architecture": "9.0",
    "compiler": "image:1",
    "store": "file:///store",
    "model": DataSource("file:///model"),
}


def settings(major: int = 10, quantized: bool = False, **changes: Any) -> Settings:
    return settings_of(BuildRequest(**REQUEST, **changes), major, quantized)


@pytest.mark.parametrize(
    ("major", "precision", "quantized", "flags", "conversion", "calibrated"),
    [
        (10, "", False, (), "", False),
        (10, "fp16", False, ("FP16",), "", False),
        (10, "int8", True, ("INT8", "FP16"), "", False),
        (10, "int8", False, ("INT8", "FP16"), "", True),
        (10, "fp8", False, (), "fp8", False),
        (10, "fp8", True, (), "", False),
        (11, "fp16", False, (), "fp16", False),
        (11, "int8", False, (), "int8", False),
        (11, "int8", True, (), "", False),
        (11, "tf32", False, (), "", False),
    ],
)
def test_what_a_precision_means_to_a_release(
    major: int, precision: str, quantized: bool, flags: tuple[str, ...], conversion: str, calibrated: bool
) -> None:
    data = DataSource("file:///data") if precision in ("int8", "fp8") else DataSource()
    result = settings(major, quantized, precision=precision, calibration=data)
    assert (result.flags, result.conversion, result.calibrated) == (flags, conversion, calibrated)
    assert result.strong is (major == 11 or precision == "fp8")
    assert Settings(**result.arguments()) == result


sizes = st.integers(1, 64)


@given(st.lists(st.one_of(sizes, st.just(-1)), max_size=3), st.lists(sizes, min_size=3, max_size=3), sizes, sizes)
def test_a_declared_profile_is_ordered_and_keeps_what_is_fixed(
    inner: list[int], dims: list[int], largest: int, best: int
) -> None:
    network = NetworkInput("x", (-1, *inner))
    declared = TensorSpec("x", "TYPE_FP32", tuple(dims[: len(inner)]))
    (profile,) = profiles_of([network], [declared], largest, [best], [])
    least, opt, most = profile.shapes["x"]
    assert all(low <= middle <= high for low, middle, high in zip(least, opt, most, strict=True))
    assert (least[0], most[0]) == (1, largest)
    assert opt[0] == (best if best <= largest else largest)
    for size, *dimension in zip(network.shape[1:], least[1:], opt[1:], most[1:], strict=True):
        assert len(set(dimension)) == 1
        assert size in (-1, dimension[0])


def test_nothing_that_varies_needs_no_profile() -> None:
    assert profiles_of([NetworkInput("x", (8, 3))], [], 8, [], []) == []
    assert profiles_of([NetworkInput("x", (8, 3))], [], 0, [], []) == []


@pytest.mark.parametrize(
    ("lines", "failure", "message"),
    [
        (
            [
                "Tactic Device request: 4720MB Available: 2777MB. Device memory is insufficient to use tactic.",
                "Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[a...b]}.)",
            ],
            BuildFailure.OUT_OF_GPU_MEMORY,
            "lower engine.options.workspace",
        ),
        (
            ["Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[a...b]}.)"],
            BuildFailure.UNSUPPORTED_MODEL,
            "TensorRT has no way to run a layer",
        ),
        (["Error Code 2: OutOfMemory (no further information)"], BuildFailure.OUT_OF_GPU_MEMORY, "larger GPU"),
        (
            ["CUDA initialization failure with error: 35. Please check your CUDA installation:"],
            BuildFailure.BUILDER_MISSING,
            "set engine.image",
        ),
        (
            ["Network has dynamic or shape inputs, but no optimization profile has been defined."],
            BuildFailure.INVALID_OPTIONS,
            "engine.options.profiles",
        ),
        (["something else"], BuildFailure.BUILD_FAILED, "tensorrt built no engine: something else"),
        ([], BuildFailure.BUILD_FAILED, "it gives no reason"),
    ],
)
def test_what_tensorrt_says_is_a_reason(lines: list[str], failure: BuildFailure, message: str) -> None:
    error = failed(lines)
    assert (error.failure, message in error.message) == (failure, True), error.message


def test_a_build_that_was_ordered_to_end_may_be_tried_again() -> None:
    assert failed(["whatever"], cancelled=True).passes


def test_steps_within_steps_are_percents_that_only_grow() -> None:
    with standin():
        from argosy_builder.tensorrt.monitoring import Monitor

        percents: list[int] = []
        monitor = Monitor(lambda percent, line: percents.append(percent))
        monitor.phase_start("outer", None, 2)
        monitor.phase_start("inner", "outer", 4)
        assert [monitor.step_complete("inner", step) for step in range(4)] == [True] * 4
        monitor.phase_finish("inner")
        monitor.step_complete("outer", 0)
        monitor.phase_start("again", "outer", 10)
        monitor.step_complete("again", 4)
        assert percents == [0, 0, 12, 25, 37, 50, 50, 50, 75]
        monitor.cancelled.set()
        assert monitor.step_complete("again", 5) is False


@pytest.mark.parametrize("profiles", ["2", [1], {"x": {}}])
def test_profiles_that_are_none(profiles: Any) -> None:
    with pytest.raises(BuildError, match=r"engine\.options\.profiles(\[0\])?: expected a (list|map)"):
        settings(options={"profiles": profiles})
